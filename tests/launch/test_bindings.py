"""Where each task of a placement is, which adapters NCCL may use, and how far the groups of a job are spread."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topoplace as tp
from placed_ranks import cluster, machine
from topoplace.launch import bindings, environment
from topoplace.topology.device_numbers import visible_numbers

NICS = (
    tp.Nic("mlx5_0", ("PIX", "PIX", "SYS", "SYS")),
    tp.Nic("mlx5_1", ("PIX", "PIX", "SYS", "SYS")),
    tp.Nic("mlx5_10", ("SYS", "SYS", "PXB", "PXB")),
    tp.Nic("mlx5_2", ("NODE", "NODE", "NODE", "NODE")),
)
WITH_NICS = tp.Topology.cluster(replace(machine("0-7", None), nics=NICS), names=["a", "b"])


def test_bindings_of_a_cluster() -> None:
    found = tp.Placement((5, 0, 3, 4), topology=WITH_NICS).bindings
    assert found == (
        tp.Binding(0, "b", 5, 1, "mlx5_1", 0, "0-7"),
        tp.Binding(1, "a", 0, 0, "mlx5_0", 0, "0-7"),
        tp.Binding(2, "a", 3, 3, "mlx5_10", 1, None),
        tp.Binding(3, "b", 4, 0, "mlx5_0", 0, "0-7"),
    )


def test_names_of_gpus_are_their_device_numbers() -> None:
    gpus = [tp.Gpu(0, "GPU3", numa_node=1, socket=0), tp.Gpu(1, "GPU6")]
    found = tp.Placement((1, 0), topology=tp.Topology(gpus)).bindings
    assert found == (
        tp.Binding(0, "machine0", 1, 6, None, None, None),
        tp.Binding(1, "machine0", 0, 3, None, 1, None),
    )


def test_a_remote_gpu_is_no_device_of_the_machine() -> None:
    topology = cluster(("a", "b"))
    placement = tp.Placement((0, 5), topology=topology, hosts=(tp.HostShare(0),) * 2, remote=(5,))
    assert placement.bindings[1] == tp.Binding(1, "a", 5, None, None, None, None)


def test_adapters_of_machines_that_no_fabric_joins_are_unknown() -> None:
    nic = tp.Nic("mlx5_0", ("PIX", "SYS"))
    topology = tp.Topology.from_links(2, [], machines=["a", "b"], nics=[nic])
    assert [one.nic for one in tp.Placement((0, 1), topology=topology).bindings] == [None, None]


def test_nccl_gets_only_the_adapters_near_the_jobs_gpus() -> None:
    found = tp.Placement((0, 2, 6), topology=WITH_NICS).env()
    assert found["a"]["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1,mlx5_10"
    assert found["b"]["NCCL_IB_HCA"] == "=mlx5_10"
    script = tp.Placement((0, 2, 6), topology=WITH_NICS).launch("mpirun").files["rank.sh"]
    assert script.count("NCCL_IB_HCA==mlx5_10 ") + script.count("NCCL_IB_HCA==mlx5_10;") == 1


@pytest.mark.parametrize(
    ("gpus", "nics"),
    [
        ((0, 2), NICS),  # one machine
        ((0, 2, 4, 6), NICS[:3]),  # all adapters are near
        ((0, 4), (replace(NICS[0], name="eth0"), *NICS[1:])),  # not a name for NCCL_IB_HCA
        ((0, 4), ()),
    ],
)
def test_nccls_default_is_kept_where_it_is_right_or_unknown(
    gpus: tuple[int, ...], nics: tuple[tp.Nic, ...]
) -> None:
    topology = tp.Topology.cluster(replace(machine(), nics=nics), names=["a", "b"])
    assert "NCCL_IB_HCA" not in str(tp.Placement(gpus, topology=topology).env())


def test_spread_counts_the_domains_of_each_group() -> None:
    job = tp.JobGraph.parallel(
        tensor=2, data=2
    )  # tensor groups (0, 1) and (2, 3), data groups (0, 2) and (1, 3)
    fabric = tp.Fabric.regular(3, {"rack": 2})
    topology = tp.Topology.cluster(machine(), fabric=fabric)
    placement = tp.Placement((0, 2, 3, 8), topology=topology, job=job)
    assert placement.spread("tensor", "machine") == (2, 1.5)
    assert placement.spread("tensor", "socket") == (2, 2.0)
    assert placement.spread("data", "rack") == (2, 1.5)
    with pytest.raises(tp.AllocationError, match="dimension = 'expert' is not one of tensor, data"):
        placement.spread("expert", "rack")
    with pytest.raises(tp.AllocationError, match="level = 'rak' is not one of socket, machine, rack"):
        placement.spread("data", "rak")
    short = tp.Placement((0, 2), topology=topology, job=job)
    with pytest.raises(tp.AllocationError, match=r"gpus = \(0, 2\) are 2, the job has 4 tasks"):
        short.spread("tensor", "machine")


def test_a_placement_without_a_job_has_no_dimensions() -> None:
    with pytest.raises(tp.AllocationError, match="job = None"):
        tp.Placement((0,), topology=machine()).spread("tensor", "machine")


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun", "srun"])
def test_all_devices_of_a_cluster_are_numbered_once(launcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number for each rank would take time in the square of the ranks: minutes for a job of 4,000."""
    calls: list[tp.Topology] = []

    def counted(topology: tp.Topology) -> tuple[int, ...]:
        calls.append(topology)
        return visible_numbers(topology)

    for module in (bindings, environment):
        monkeypatch.setattr(module, "visible_numbers", counted)
    tp.Placement(tuple(range(8)), topology=cluster(("a", "b"))).launch(launcher)
    assert len(calls) == 1


def test_variables_are_quoted_for_a_shell() -> None:
    assert environment.assigned("CUDA_VISIBLE_DEVICES", "2,0,1") == "CUDA_VISIBLE_DEVICES=2,0,1"
    assert environment.assigned("CUDA_VISIBLE_DEVICES", "GPU-$(x)") == "CUDA_VISIBLE_DEVICES='GPU-$(x)'"
