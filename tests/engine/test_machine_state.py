"""Explanations of policies that decide machine by machine."""

from __future__ import annotations

import topoplace as tp


def test_explain_lists_options_of_all_machines_best_first() -> None:
    dgx, minsky = tp.machines.get("dgx1-v100"), tp.machines.get("minsky")
    cluster = tp.Cluster(tp.Topology.cluster([minsky, dgx, minsky], network=12.5))
    cluster.allocate("a", [0])
    cluster.allocate("b", [4, 8])
    explained = tp.policies.get("topo-aware").explain(tp.JobGraph.clique(2), cluster, top=30)
    utilities = [candidate.scores["system_utility"] for candidate in explained.candidates]
    assert len(set(utilities)) > 2
    assert utilities == sorted(utilities, reverse=True)
