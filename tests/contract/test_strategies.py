from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace.jobs.requirements import REQUIREMENTS
from topoplace.testing.strategies import (
    cluster_topologies,
    clusters,
    demanding_jobs,
    job_graphs,
    partitioned_topologies,
    sliced_topologies,
    topologies,
)
from topoplace.topology import compare


@given(topologies())
def test_any_topology_survives_every_round_trip(topology: tp.Topology) -> None:
    assert tp.Topology.from_json(topology.to_json()) == topology
    assert tp.Topology.from_networkx(topology.to_networkx()) == topology
    assert pickle.loads(pickle.dumps(topology)) == topology


@given(cluster_topologies())
def test_any_cluster_topology_survives_every_round_trip(topology: tp.Topology) -> None:
    assert tp.Topology.from_json(topology.to_json()) == topology == pickle.loads(pickle.dumps(topology))
    assert compare.diff(topology, tp.Topology.from_json(topology.to_json())) == ()
    for name, gpus in topology.gpus_of.items():
        machine = topology.machine(name)
        for u, first in enumerate(gpus):
            assert machine.gpus[u].name == topology.gpus[first].name
            assert [machine.link(u, v) for v in range(len(gpus))] == [
                topology.link(first, second) for second in gpus
            ]


@given(topologies(min_gpus=2) | cluster_topologies())
def test_any_topology_is_symmetric_and_agrees_with_its_matrices(topology: tp.Topology) -> None:
    bandwidth, distance = topology.bandwidth_matrix(), topology.distance_matrix()
    for u in range(topology.num_gpus):
        for v in range(topology.num_gpus):
            assert bandwidth[u, v] == bandwidth[v, u] == topology.bandwidth(u, v)
            assert distance[u, v] == topology.distance(v, u)
            assert (distance[u, v] == 0) == (u == v)
    assert topology.graph.num_vertices == topology.num_gpus
    assert topology.graph is topology.graph


@given(topologies())
def test_any_bandwidth_matrix_comes_back(topology: tp.Topology) -> None:
    matrix = topology.bandwidth_matrix()
    assert (tp.Topology.from_matrix(matrix).bandwidth_matrix() == matrix).all()


@given(job_graphs())
def test_any_job_graph_survives_pickle_with_its_handle_built(job: tp.JobGraph) -> None:
    assert (job.graph.num_vertices, job.graph.num_edges) == (job.num_tasks, len(job.edges))
    copy = pickle.loads(pickle.dumps(job))
    assert copy == job
    assert copy.graph.num_edges == len(job.edges)


@given(clusters())
def test_any_cluster_survives_its_snapshot(cluster: tp.Cluster) -> None:
    restored = tp.Cluster.restore(cluster.snapshot())
    assert restored.snapshot() == cluster.snapshot()
    assert restored.free_gpus() == cluster.free_gpus()
    held = {gpu for gpus in cluster.allocations.values() for gpu in gpus}
    rest = set(range(cluster.topology.num_gpus)) - held
    assert set(cluster.free_gpus()) == rest - set(cluster.out_of_service())


@given(
    clusters(st.one_of(partitioned_topologies(), sliced_topologies(), cluster_topologies()), know_hosts=True)
)
def test_any_cluster_of_any_kind_survives_its_snapshot(cluster: tp.Cluster) -> None:
    assert tp.Cluster.restore(cluster.snapshot()).snapshot() == cluster.snapshot()


BUSY = clusters(topologies() | cluster_topologies(), know_hosts=True)
FOUND: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], object]]] = {
    **{name: (demanding_jobs(), lambda job, name=name: name in job.requirements) for name in REQUIREMENTS},
    "two requirements": (demanding_jobs(), lambda job: len(job.requirements) > 1),
    "a partition of two GPUs": (
        partitioned_topologies(),
        lambda topology: any(len(part) == 2 for part in topology.partitions),
    ),
    "a slice next to a whole GPU": (
        sliced_topologies(),
        lambda topology: len({gpu.fraction for gpu in topology.gpus}) > 1,
    ),
    "different hosts": (BUSY, lambda cluster: len(set(cluster.hosts.resources)) > 1),
    "unknown hosts": (BUSY, lambda cluster: not cluster.hosts.resources),
    "held CPUs": (BUSY, lambda cluster: (cluster.hosts.free < cluster.hosts.capacity).any()),
    "a drained GPU": (BUSY, lambda cluster: cluster.drained_gpus() and not cluster.hosts.drained),
    "a held GPU": (BUSY, lambda cluster: cluster.held_gpus() and not cluster.hosts.held_back),
    "a held machine": (BUSY, lambda cluster: cluster.hosts.held_back and cluster.num_free),
    "a drained machine": (BUSY, lambda cluster: cluster.hosts.drained and cluster.num_free),
    "known and unknown jobs": (BUSY, lambda cluster: 0 < len(cluster.jobs) < len(cluster.allocations)),
    "a running partition": (clusters(partitioned_topologies()), lambda cluster: cluster.allocations),
}


@pytest.mark.parametrize("what", FOUND)
def test_strategies_produce(what: str) -> None:
    strategy, holds = FOUND[what]
    unshrunk = settings(max_examples=2000, database=None, phases=[Phase.generate])
    find(strategy, lambda value: bool(holds(value)), settings=unshrunk)


@pytest.mark.parametrize("module", ["strategies", "policy_machine"])
def test_without_hypothesis_the_import_says_what_to_install(module: str) -> None:
    script = f"import sys; sys.modules['hypothesis'] = None; import topoplace.testing.{module}"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"ImportError: topoplace.testing.{module} needs hypothesis" in result.stderr
