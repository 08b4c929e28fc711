"""The API contract, line by line and in its own words: what programs build on. Names may be added, none may go."""

from __future__ import annotations

import contextlib
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import topoplace as tp
from distributions import whole

TOPO_M = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"


@pytest.fixture
def topo() -> tp.Topology:
    return tp.machines.get("dgx1-v100")


@pytest.fixture
def job() -> tp.JobGraph:
    return tp.JobGraph.ring(4)


@pytest.fixture
def cluster(topo: tp.Topology) -> tp.Cluster:
    return tp.Cluster(topo)


def test_topology_ways_in() -> None:
    assert tp.Topology.from_nvidia_smi(TOPO_M, gpu_model="V100").bandwidth(0, 1) == 50.0
    bandwidth = np.array([[0.0, 9.0], [9.0, 0.0]])
    assert tp.Topology.from_matrix(bandwidth).bandwidth(0, 1) == 9.0
    topo = tp.Topology.from_links(3, [(0, 1, 50.0)], default=12.0)
    assert (topo.bandwidth(0, 1), topo.bandwidth(1, 2)) == (50.0, 12.0)
    g = nx.Graph()
    g.add_edge("a", "b", bandwidth=25.0)
    assert tp.Topology.from_networkx(g, weight="bandwidth").bandwidth(0, 1) == 25.0
    assert tp.machines.get("dgx1-v100").name in tp.machines.names()
    assert {"minsky", "summit", "dgx1-p100", "dgx1-v100", "torus2d-16", "cubemesh-16"} <= set(
        tp.machines.names()
    )


def test_topology_answers(topo: tp.Topology) -> None:
    assert (topo.num_gpus, topo.num_machines) == (8, 1)
    gpu = topo.gpus[3]
    assert (gpu.index, gpu.name, gpu.model, gpu.machine, gpu.socket, gpu.memory_gb) == (
        *(3, "GPU3", "V100", "machine0", 0, 16.0),
    )
    assert topo.machine_of.dtype == np.int32
    assert topo.machine_of.shape == (8,)
    assert topo.bandwidth(0, 3) == topo.bandwidth_matrix()[0, 3] == 50.0
    assert topo.bandwidth_matrix().dtype == np.float64
    assert topo.distance(0, 5) == topo.distance_matrix()[0, 5] == 20.0
    assert topo.link(0, 3).kind is tp.LinkKind.NVLINK2
    assert topo.link(0, 3).lanes == 2
    assert tp.Topology.from_json(topo.to_json()) == topo
    assert len(topo.digest()) == 64
    assert topo.to_networkx().number_of_edges() == 28


def test_job_graph() -> None:
    for job in (
        *(tp.JobGraph.ring(4), tp.JobGraph.chain(4), tp.JobGraph.star(4), tp.JobGraph.tree(4)),
        *(tp.JobGraph.clique(4), tp.JobGraph.allreduce(4), tp.JobGraph.independent(4)),
    ):
        assert job.num_tasks == 4
    assert tp.JobGraph.mesh((2, 4)).num_tasks == tp.JobGraph.torus((2, 2, 2)).num_tasks == 8
    w = np.array([[0.0, 2.0], [2.0, 0.0]])
    assert (
        tp.JobGraph.from_matrix(w).edges == tp.JobGraph.from_edges(2, [(0, 1, 2.0)]).edges == ((0, 1, 2.0),)
    )
    assert tp.JobGraph.from_networkx(nx.cycle_graph(4)).edges == tp.JobGraph.ring(4).edges
    job = tp.JobGraph.ring(4).with_(
        bandwidth_sensitive=True,
        min_utility=0.5,
        gpu_memory_gb=16,
        gpu_model="V100",
        gpu_fraction=1.0,
        cpus=4,
        memory_gb=32,
        single_machine=True,
        anti_affinity=False,
        profile="alexnet/1",
    )
    assert (job.bandwidth_sensitive, job.gpu_model, job.profile) == (True, "V100", "alexnet/1")


def test_cluster(cluster: tp.Cluster, job: tp.JobGraph) -> None:
    placement = tp.policies.get("mapa-greedy").place(job, cluster)
    assert placement is not None
    cluster.allocate("job-7", placement)
    assert cluster.owner(placement.gpus[0]) == "job-7"
    assert cluster.allocations == {"job-7": placement.gpus}
    for gpus in (placement.gpus[:1], [99]):
        with pytest.raises(tp.AllocationError):
            cluster.allocate("job-8", gpus)
    with pytest.raises(tp.AllocationError):
        cluster.allocate("job-7", cluster.free_gpus()[:1])
    cluster.release("job-7")
    assert cluster.free_gpus() == tuple(range(8))
    cluster.drain(3)
    cluster.drain("machine0")
    assert cluster.free_gpus() == ()
    cluster.undrain("machine0")
    with contextlib.suppress(KeyError), cluster.transaction():
        cluster.allocate("job-9", [0])
        raise KeyError
    snapshot = cluster.snapshot()
    assert type(snapshot) is bytes
    assert tp.Cluster.restore(snapshot).free_gpus() == cluster.copy().free_gpus() == tuple(range(8))


def test_policy_and_placement(cluster: tp.Cluster, job: tp.JobGraph) -> None:
    policy = tp.policies.get("mapa-preserve")
    assert type(policy) is type(tp.policies.Preserve())
    placement = policy.place(job, cluster)
    assert placement is not None
    assert type(placement.gpus) is tuple
    assert {
        "aggregated_bandwidth",
        "effective_bandwidth",
        "preserved_bandwidth",
        "bottleneck_bandwidth",
    } <= set(placement.scores)
    assert placement.optimal is True
    assert placement.env() == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, placement.gpus)),
    }
    assert len(policy.explain(job, cluster, top=5).candidates) == 5
    explained = policy.explain(tp.JobGraph.ring(9), cluster, top=5)
    assert isinstance(explained.refusal, tp.Refusal)
    assert policy.place(tp.JobGraph.ring(9), cluster) is None
    queue = [tp.policies.QueuedJob("a", job), tp.policies.QueuedJob("b", job)]
    plan = policy.plan(queue, cluster, 0.0)
    assert isinstance(plan, tp.Plan)
    assert [job_id for job_id, _ in plan.start] == ["a", "b"]


def test_placement_over_several_machines_names_them() -> None:
    topo = tp.Topology.from_links(4, [(0, 1, 50.0)], machines=["a", "a", "b", "b"])
    env = tp.Placement(gpus=(3, 0), topology=topo).env()
    assert env["a"] == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    assert env["b"] == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}


def test_kernels(topo: tp.Topology, job: tp.JobGraph) -> None:
    k = tp.kernels
    options = {
        "distinct": "vertex_sets",
        "induced": False,
        "candidates": None,
        "min_weight": 25.0,
        "timeout": 5.0,
    }
    rows = k.enumerate_subgraphs(job.graph, topo.graph, limit=None, **options)
    assert (rows.dtype, rows.shape[1]) == (np.int32, 4)
    assert k.count_subgraphs(job.graph, topo.graph, **options) == len(rows)
    best = k.best_subgraph(job.graph, topo.graph, objective="sum", free=None, timeout=5.0)
    assert best.vertices.dtype == np.int32
    assert (best.score, best.optimal) == (best.bound, True)
    weights, edges = topo.bandwidth_matrix(), np.array([(a, b) for a, b, _ in job.edges])
    for pattern in (job.graph, edges, nx.cycle_graph(4)):
        assert k.best_subgraph(pattern, weights).score == best.score


@whole
def test_simulation(topo: tp.Topology, tmp_path: Path) -> None:
    workload, policy, model = (
        tp.simulate.Workload.mapa(10),
        tp.policies.get("baseline"),
        tp.simulate.MapaSlowdown(),
    )
    result = tp.simulate(topo, workload, policy, performance=model, seed=0, progress=True)
    columns = ("job", "submit", "start", "end", "wait", "slowdown", "gpus", "scores", "postponed")
    assert set(columns) <= set(result.jobs.dtype.names)
    assert len(result.jobs) == 10
    assert result.summary()["makespan"] > 0
    others = [tp.simulate(topo, workload, tp.policies.get("mapa-greedy"), performance=model)]
    assert [row["policy"] for row in result.compare(others)] == ["baseline", "mapa-greedy"]
    result.gantt(tmp_path / "gantt.png")
    assert (tmp_path / "gantt.png").exists()
    pytest.importorskip("pandas")
    assert len(result.to_pandas()) == 10


@pytest.mark.parametrize(
    ("text", "build"),
    [
        (r"bandwidth\[2, 5\] = nan", lambda: tp.Topology.from_matrix(_with_nan())),
        ("line 3: 3 columns, the header has 2", lambda: tp.Topology.from_nvidia_smi(f"{TOPO_M[:-1]}\tX\n")),
    ],
)
def test_bad_input_is_refused_where_it_enters(text: str, build: object) -> None:
    with pytest.raises(tp.TopologyError, match=text):
        build()


def _with_nan() -> np.ndarray:
    matrix = np.zeros((6, 6))
    matrix[2, 5] = np.nan
    return matrix
