"""Explanations of policies that decide machine by machine."""

from __future__ import annotations

import math
from itertools import permutations

import topoplace as tp
from topoplace.cluster.job_kinds import number_of
from topoplace.engine.machine_state import ClusterView


def test_explain_lists_options_of_all_machines_best_first() -> None:
    dgx, minsky = tp.machines.get("dgx1-v100"), tp.machines.get("minsky")
    cluster = tp.Cluster(tp.Topology.cluster([minsky, dgx, minsky], network=12.5))
    cluster.allocate("a", [0])
    cluster.allocate("b", [4, 8])
    explained = tp.policies.get("topo-aware").explain(tp.JobGraph.clique(2), cluster, top=30)
    utilities = [candidate.scores["system_utility"] for candidate in explained.candidates]
    assert len(set(utilities)) > 2
    assert utilities == sorted(utilities, reverse=True)


def test_the_bandwidth_in_use_does_not_depend_on_the_order_in_which_jobs_became_known() -> None:
    for i, amounts in enumerate(permutations((0.1, 0.2, 0.3))):
        jobs = [
            tp.JobGraph.ring(1).with_(memory_bandwidth=amount, profile=f"model{i}/1") for amount in amounts
        ]
        assert len({number_of(job) for job in jobs}) == len(jobs)
        cluster = tp.Cluster(tp.machines.get("minsky"))
        for gpu, job in enumerate(jobs):
            cluster.allocate(f"job{gpu}", [gpu], job)
        assert cluster.view(ClusterView).state(0).memory_bandwidth == math.fsum(amounts)
