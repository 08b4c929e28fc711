"""Tables of a cluster's view: the kept ones learn of changes, the forgotten ones cost nothing more."""

from __future__ import annotations

import topoplace as tp
from topoplace.engine import machine_state
from topoplace.engine.machine_state import ClusterView, MachineWatcher


def test_only_tables_that_are_kept_learn_of_changes() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    view = cluster.view(ClusterView)
    view.state(0)
    tables = [view.table(key, MachineWatcher) for key in range(machine_state._MAX_TABLES + 1)]
    for table in tables:
        table.stale.clear()
    cluster.allocate("job", [0])
    assert not tables[0].stale
    assert tables[-1].stale == {0}
    assert view.table(0, MachineWatcher) is not tables[0]


def test_explain_lists_options_of_all_machines_best_first() -> None:
    dgx, minsky = tp.machines.get("dgx1-v100"), tp.machines.get("minsky")
    cluster = tp.Cluster(tp.Topology.cluster([minsky, dgx, minsky], network=12.5))
    cluster.allocate("a", [0])
    cluster.allocate("b", [4, 8])
    explained = tp.policies.get("topo-aware").explain(tp.JobGraph.clique(2), cluster, top=30)
    utilities = [candidate.scores["system_utility"] for candidate in explained.candidates]
    assert len(set(utilities)) > 2
    assert utilities == sorted(utilities, reverse=True)
