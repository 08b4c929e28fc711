"""Arguments nobody should pass: each is refused by an error of ours that names the argument, on one short line."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from odd_values import ODD
from topoplace import kernels
from topoplace.jobs.job_graph import PATTERNS
from topoplace_lab.simulate.performance.given_models import model_named

TOPOLOGY = tp.machines.get("dgx1-v100")
JOB = tp.JobGraph.ring(3)
CLUSTER = tp.Cluster(TOPOLOGY)
Workload = tp.simulate.Workload
ONE_JOB = Workload([JOB], [0.0], [1.0])
MATRIX = "\tGPU0\nGPU0\t X \n"

TRACE = "job_id,submit_s,num_gpus,duration_s\na,0,2,5\n"
SACCT = "JobID|Submit|Start|End|NNodes|ReqTRES\n1|0|1|9|1|gres/gpu=1\n"
SWF = "1 0 0 9 4 -1 -1 4 9 8 1 -1 -1 -1 1 -1 -1 -1"
PBS = "01/02/2013 10:00:00;E;1;queue=G ctime=1 resources_used.walltime=9 Resource_List.nodes=2:gpus=1"


def in_link(place: int) -> Callable[[Any], object]:
    def build(value: Any) -> object:
        link: list[Any] = [0, 1, 25.0, "nvlink2", 1]
        link[place] = value
        return tp.Topology.from_links(4, [tuple(link)])  # type: ignore[list-item]

    return build


def option(of: Callable[..., object], name: str, *given: Any) -> Callable[[Any], object]:
    return lambda value: of(*given, **{name: value})


ENTRANCES: dict[str, Callable[[Any], object]] = {
    "n": lambda value: tp.Topology.from_links(value, []),
    "links": lambda value: tp.Topology.from_links(4, value),
    "links[0]": lambda value: tp.Topology.from_links(4, [value]),
    **{f"links[0][{i}]": in_link(i) for i in range(5)},
    **{
        f"from_links {name}": option(tp.Topology.from_links, name, 2, [])
        for name in (
            "default",
            "name",
            "model",
            "memory_gb",
            "sockets",
            "machines",
            "names",
            "network",
            "nics",
        )
    },
    "bandwidth": tp.Topology.from_matrix,
    "text": tp.Topology.from_json,
    "nvidia-smi": tp.Topology.from_nvidia_smi,
    "gpu_model": option(tp.Topology.from_nvidia_smi, "gpu_model", MATRIX),
    "pcie_gb_per_s": option(tp.Topology.from_nvidia_smi, "pcie_gb_per_s", MATRIX),
    "g": tp.Topology.from_networkx,
    "gpus": tp.Topology,
    "link": lambda value: TOPOLOGY.link(value, 1),
    "distance": lambda value: TOPOLOGY.distance(0, value),
    "machine": tp.machines.get,
    **{
        name: getattr(tp.JobGraph, name)
        for name in (*PATTERNS, "mesh", "torus", "from_matrix", "from_networkx")
    },
    "profile text": tp.PerformanceProfile.from_csv,
    "profile JSON": tp.PerformanceProfile.from_json,
    "solo": tp.PerformanceProfile,
    "colocation": lambda value: tp.PerformanceProfile({}, value),
    "job text": tp.JobGraph.from_json,
    "dims": lambda value: tp.JobGraph.mesh((2, value)),
    "edges": lambda value: tp.JobGraph.from_edges(4, value),
    "edges[0]": lambda value: tp.JobGraph.from_edges(4, [value]),
    "weight": lambda value: tp.JobGraph.from_edges(4, [(0, 1, value)]),
    **{
        f"with_ {name}": option(JOB.with_, name)
        for name in (
            *("name", "bandwidth_sensitive", "min_utility", "gpu_memory_gb", "gpu_model", "gpu_fraction"),
            *("cpus", "memory_gb", "single_machine", "anti_affinity", "profile", "memory_bandwidth"),
        )
    },
    "cluster": tp.Cluster,
    "job_id": lambda value: tp.Cluster(TOPOLOGY).allocate(value, [0]),
    "allocate": lambda value: tp.Cluster(TOPOLOGY).allocate("job", value),
    "release": CLUSTER.release,
    "owner": CLUSTER.owner,
    "drain": lambda value: tp.Cluster(TOPOLOGY).drain(value),
    "restore": tp.Cluster.restore,
    "placement": lambda value: tp.Placement(gpus=value, topology=TOPOLOGY),
    "topology of a placement": lambda value: tp.Placement(gpus=(0,), topology=value),
    "policy": tp.policies.get,
    **{
        name: option(tp.policies.Preserve, name)
        for name in ("min_effective_bandwidth", "coefficients", "timeout", "force_eq2")
    },
    "coefficients[0]": lambda value: tp.policies.Preserve(coefficients=[value] * 14),
    "place job": lambda value: tp.policies.Greedy().place(value, CLUSTER),
    "place cluster": lambda value: tp.policies.Greedy().place(JOB, value),
    "top": lambda value: tp.policies.Greedy().explain(JOB, CLUSTER, value),
    "queue": lambda value: tp.policies.Greedy().plan(value, CLUSTER, 0.0),
    "fit": tp.objectives.EffectiveBandwidth.fit,
    "jobs": lambda value: Workload(value, [0.0], [1.0]),
    "jobs[0]": lambda value: Workload([value], [0.0], [1.0]),
    "submit_time": lambda value: Workload([JOB], value, [1.0]),
    "base_time[0]": lambda value: Workload([JOB], [0.0], [value]),
    "job_ids": lambda value: Workload([JOB], [0.0], [1.0], value),
    "num_jobs": lambda value: Workload.mapa(value),
    "seed of mapa": lambda value: Workload.mapa(2, value),
    "pattern": lambda value: Workload.mapa(2, pattern=value),
    "mean_gap": lambda value: Workload.poisson(2, value, 1.0, [1]),
    "mean_time": lambda value: Workload.poisson(2, 1.0, value, [1]),
    "sizes": lambda value: Workload.poisson(2, 1.0, 1.0, value),
    "from_mapa": Workload.from_mapa,
    "from_csv": Workload.from_csv,
    "from_trace": Workload.from_trace,
    "from_philly": Workload.from_philly,
    **{
        f"from_trace {name}": option(Workload.from_trace, name, TRACE)
        for name in (
            *("pattern", "bandwidth_sensitive", "profile", "duration", "columns", "without_gpus"),
            "skip_bad_rows",
        )
    },
    "from_swf": Workload.from_swf,
    "from_pbs": Workload.from_pbs,
    "from_sacct": Workload.from_sacct,
    **{
        f"from_sacct {name}": option(Workload.from_sacct, name, SACCT)
        for name in ("partitions", "without_gpus", "seed")
    },
    **{
        f"from_swf {name}": option(Workload.from_swf, name, SWF)
        for name in ("gpus_per_node", "cpus_per_node", "statuses", "queues", "seed")
    },
    **{
        f"from_pbs {name}": option(Workload.from_pbs, name, PBS)
        for name in ("queues", "without_gpus", "seed")
    },
    **{
        f"map_graph {name}": option(kernels.map_graph, name, JOB.graph, TOPOLOGY.distance_matrix())
        for name in (
            *("target_cost", "free", "regions", "kicks", "proof_nodes", "seed", "timeout", "max_nodes"),
        )
    },
    "source": lambda value: kernels.map_graph(value, TOPOLOGY.distance_matrix()),
    "target_distance": lambda value: kernels.map_graph(JOB.graph, value),
    "regions[0]": lambda value: kernels.map_graph(JOB.graph, TOPOLOGY.distance_matrix(), regions=[value]),
    **{
        f"bipartition {name}": option(kernels.bipartition, name, JOB.graph)
        for name in (
            *("fraction", "imbalance", "vertex_weights", "fixed", "starts", "cycles", "seed", "exact_up_to"),
            "timeout",
        )
    },
    "side": lambda value: kernels.verify_bipartition(JOB.graph, value, 1.0),
    "cut": lambda value: kernels.verify_bipartition(JOB.graph, [0, 1, 1], value),
    "target_of": lambda value: kernels.verify_task_mapping(JOB.graph, TOPOLOGY.distance_matrix(), value, 1.0),
    "cost": lambda value: kernels.verify_task_mapping(
        JOB.graph, TOPOLOGY.distance_matrix(), [0, 1, 2], value
    ),
    "simulate topology": lambda value: tp.simulate(value, ONE_JOB, tp.policies.Greedy()),
    "simulate workload": lambda value: tp.simulate(TOPOLOGY, value, tp.policies.Greedy()),
    "simulate policy": lambda value: tp.simulate(TOPOLOGY, ONE_JOB, value),
    "simulate performance": lambda value: tp.simulate(
        TOPOLOGY, ONE_JOB, tp.policies.Greedy(), performance=value
    ),
    "simulate seed": lambda value: tp.simulate(TOPOLOGY, ONE_JOB, tp.policies.Greedy(), seed=value),
    **{
        name: option(tp.simulate.MapaSlowdown, name)
        for name in ("shares", "default_share", "flat_gb_per_s", "floor_gb_per_s")
    },
    **{
        f"StepTime {name}": option(tp.simulate.StepTime, name)
        for name in (
            "steps",
            "default_step",
            "shares",
            "default_share",
            "overlap",
            "efficiency",
            "measured_on",
        )
    },
    "model_named": model_named,
}


@pytest.mark.parametrize("name", ENTRANCES)
def test_odd_argument_is_taken_or_refused_in_words(name: str) -> None:
    for value in ODD:
        try:
            ENTRANCES[name](value)
        except ValueError as error:
            message = str(error)
            assert 0 < len(message) < 600
            assert "\n" not in message


def test_what_was_given_may_change_later() -> None:
    matrix = np.array([[0.0, 5.0], [5.0, 0.0]])
    topology, job = tp.Topology.from_matrix(matrix), tp.JobGraph.from_matrix(matrix)
    gpus, times, jobs = [0, 1], np.array([1.0]), [job]
    placement = tp.Placement(gpus=gpus, topology=topology)  # type: ignore[arg-type]
    workload = Workload(jobs, times, times)
    matrix[:] = 7.0
    gpus.append(2)
    times[0] = -1.0
    jobs.clear()
    assert topology.bandwidth(0, 1) == 5.0
    assert job.edges == ((0, 1, 5.0),)
    assert placement.gpus == (0, 1)
    assert (len(workload), workload.base_time.tolist()) == (1, [1.0])


def test_what_is_handed_out_cannot_be_changed() -> None:
    for array in (
        TOPOLOGY.bandwidth_matrix(),
        TOPOLOGY.distance_matrix(),
        TOPOLOGY.machine_of,
        ONE_JOB.submit_time,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        CLUSTER.allocations["job"] = (1,)  # type: ignore[index]
    with pytest.raises(TypeError):
        TOPOLOGY.gpus_of["machine0"] = ()  # type: ignore[index]


def test_read_only_and_sparse_strides_are_welcome() -> None:
    wide = np.zeros((4, 4))
    wide[0, 2] = wide[2, 0] = 9.0
    view = wide[::2, ::2]
    view.flags.writeable = False
    assert tp.Topology.from_matrix(view).bandwidth(0, 1) == 9.0
    assert tp.Topology.from_matrix(np.asfortranarray(view.astype(np.float32))).bandwidth(0, 1) == 9.0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_equal_and_work(again: Callable[[Any], Any]) -> None:
    tp.policies.Greedy().place(JOB, CLUSTER)  # fills the caches of both
    assert again(TOPOLOGY) == TOPOLOGY
    assert hash(again(TOPOLOGY)) == hash(TOPOLOGY)
    assert again(JOB) == JOB
    assert again(CLUSTER).snapshot() == CLUSTER.snapshot()
    placed = tp.policies.Greedy().place(again(JOB), again(CLUSTER))
    assert placed == tp.policies.Greedy().place(JOB, CLUSTER)
    assert again(placed) == placed
