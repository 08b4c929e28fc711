"""`reorder` against all orders of a few hosts, on known cases, and its arguments."""

from __future__ import annotations

import math
import random
import re
from itertools import permutations

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from small_clusters import FAMILIES, linked_cluster, small_cluster, small_job

TENSOR = tp.JobGraph.parallel(tensor=8, pipeline=4, data=2)


def racks(count: int, size: int) -> tp.Topology:
    """Return machines of eight GPUs in racks of so many, whose uplinks carry a quarter."""
    fabric = tp.Fabric.regular(count, {"rack": size, "spine": count})
    fabric = fabric.with_level("rack", gb_per_s=50.0)
    fabric = fabric.with_level("spine", gb_per_s=50.0, oversubscription=4.0)
    return tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)


def blocks_of(hosts: tuple[str, ...], topology: tp.Topology, size: int) -> list[int]:
    """Return the GPUs of the ranks, with so many on each host."""
    healthy = {gpu.index for gpu in topology.gpus if gpu.healthy}
    return [gpu for host in hosts for gpu in [one for one in topology.gpus_of[host] if one in healthy][:size]]


def is_whole(job: tp.JobGraph, gpus: list[int], topology: tp.Topology) -> bool:
    """Return True if each required group is in one domain of its level."""
    codes = {level.name: level.codes.tolist() for level in topology.levels}
    for group in job.groups:
        machines = {int(topology.machine_of[gpus[task]]) for task in group.tasks}
        domains = {codes[group.within][machine] for machine in machines} if group.within in codes else {-1}
        if len(machines) > 1 and (len(domains) > 1 or -1 in domains):
            return False
    return True


@given(st.integers(0, 1 << 30))
def test_the_order_is_the_best_of_all(seed: int) -> None:
    draws = random.Random(seed)
    is_flat = draws.random() < 0.2
    found = linked_cluster(draws) if is_flat else small_cluster(draws.choice(FAMILIES), draws)
    topology = found.topology.with_unhealthy(found.drained_gpus())
    room = {host: sum(topology.gpus[gpu].healthy for gpu in gpus) for host, gpus in topology.gpus_of.items()}
    hosts = [host for host, gpus in room.items() if gpus]
    draws.shuffle(hosts)
    hosts = hosts[: draws.randint(1, 5)]
    size = draws.randint(1, min((room[host] for host in hosts), default=1))
    if len(hosts) * size < 2:
        return
    levels = [level.name for level in topology.levels if not level.rail]
    job = small_job(len(hosts) * size, draws, levels)
    least = math.inf
    for tried in permutations(hosts):
        gpus = blocks_of(tried, topology, size)
        if is_whole(job, gpus, topology):
            least = min(least, tp.communication_time(job, gpus, topology).seconds)
        else:
            assert job.groups
    if least == math.inf:
        if job.groups:
            with pytest.raises(ValueError, match=r"^job: "):
                tp.reorder(hosts, topology, job)
        return
    order = tp.reorder(hosts, topology, job)
    gpus = blocks_of(order.hosts, topology, size)
    assert sorted(order.hosts) == sorted(hosts)
    assert list(order.placement.gpus) == gpus
    assert is_whole(job, gpus, topology)
    assert order.time == tp.communication_time(job, gpus, topology).seconds == pytest.approx(least)
    assert order.bound <= order.time * (1 + 1e-6)
    assert order.optimal
    given_gpus = blocks_of(tuple(hosts), topology, size)
    assert order.before == tp.communication_time(job, given_gpus, topology).seconds
    assert tp.reorder(order.hosts, topology, job).hosts == order.hosts


def test_blocks_that_communicate_much_get_hosts_of_one_rack() -> None:
    topology = racks(8, 4)
    apart = [f"machine{i}" for i in (0, 4, 1, 5, 2, 6, 3, 7)]
    order = tp.reorder(apart, topology, TENSOR)
    assert order.optimal
    assert order.time == pytest.approx(tp.communication_time(TENSOR, range(64), topology).seconds)
    assert order.before > 2 * order.time
    assert order.placement.launch("torchrun").files.keys() == {"torchrun.sh"}


def test_many_hosts_are_put_in_order_at_once() -> None:
    topology = racks(64, 8)
    job = tp.JobGraph.parallel(tensor=8, pipeline=8, data=8)
    hosts = list(topology.machine_names)
    in_order = tp.communication_time(job, range(512), topology).seconds
    random.Random(1).shuffle(hosts)
    order = tp.reorder(hosts, topology, job)
    assert order.bound <= order.time <= in_order < order.before
    assert sorted(order.hosts) == sorted(hosts)


def test_the_given_order_stays_where_another_gains_nothing() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), 8)
    hosts = ("machine3", "machine1", "machine7", "machine0")
    order = tp.reorder(iter(hosts), topology, tp.JobGraph.ring(32))
    assert (order.hosts, order.time, order.optimal) == (hosts, order.before, True)


def test_fewer_ranks_than_gpus_get_the_first_healthy_ones() -> None:
    topology = racks(2, 2).with_unhealthy([1, 8])
    order = tp.reorder(["machine1", "machine0"], topology, tp.JobGraph.ring(4))
    assert order.placement.gpus == (9, 10, 0, 2)


def test_a_required_group_is_kept_even_if_the_given_order_breaks_it() -> None:
    topology = racks(4, 2)
    job = tp.JobGraph.independent(32).grouped(16, within="rack")
    order = tp.reorder(["machine0", "machine2", "machine1", "machine3"], topology, job)
    assert (order.time, order.optimal) == (0.0, True)
    assert [topology.levels[0].codes[int(name[-1])] for name in order.hosts] in ([0, 0, 1, 1], [1, 1, 0, 0])
    crossing = tp.JobGraph.independent(32).grouped((4, 12, 16), within="rack")
    order = tp.reorder(["machine0", "machine2", "machine1", "machine3"], topology, crossing)
    assert {order.hosts[0], order.hosts[1]} in ({"machine0", "machine1"}, {"machine2", "machine3"})


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            TENSOR.with_(within="rack"),
            "job: on these hosts alone: needs 64 GPUs within one rack, the idle",
        ),
        (TENSOR.with_(max_machines=4), "job: on these hosts alone: needs 64 GPUs on at most 4"),
        (TENSOR.with_(gpu_model="V100"), "job: on these hosts alone: needs 64 V100 GPUs"),
        (TENSOR.with_(within="hall"), "job: within = 'hall' cannot be honoured: the levels of the fabric"),
        (
            TENSOR.grouped(16, within="machine"),
            "job: groups: no order of the hosts was found that keeps all, such as tasks 0-15 in one mach",
        ),
        (
            TENSOR.grouped((40, 24), within="rack"),
            "job: groups: no order of the hosts was found that keeps all, such as tasks 0-39 in one rack",
        ),
    ],
)
def test_a_broken_requirement_is_named(job: tp.JobGraph, told: str) -> None:
    topology = racks(8, 4)
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        tp.reorder(topology.machine_names, topology, job)


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (["machine0", "machin1"], "hosts[1] = 'machin1' is no machine of cluster; did you mean machine1"),
        (["machine1", "machine0", "machine1"], "hosts[2] = 'machine1' is hosts[0] too"),
        (["machine0", 1], "hosts[1] = 1 is not a non-empty string"),
        ("machine0", "hosts = 'machine0' is not a sequence"),
        ({"machine0"}, "hosts = {'machine0'} is a set, which has no order"),
        ([], "hosts is empty"),
        (["machine0", "machine1", "machine2"], "job: 64 tasks on 3 hosts, which must have equally many each"),
        (["machine0", "machine1"], "hosts[0] = 'machine0': it has 8 healthy GPUs for 32 tasks"),
    ],
)
def test_wrong_hosts_are_refused(hosts: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        tp.reorder(hosts, racks(4, 2), TENSOR)


def test_other_wrong_arguments_are_refused() -> None:
    topology = racks(4, 2)
    for arguments, told in (
        ((["machine0"], topology, "ring"), "job = 'ring' is not a JobGraph"),
        ((["machine0"], "dgx1", TENSOR), "topology = 'dgx1' is not a Topology"),
        (
            (["machine0"], topology, tp.JobGraph.ring(2).with_(gpu_fraction=0.5)),
            "job: it takes parts of GPUs",
        ),
        ((["machine0"], topology, tp.JobGraph.without_gpus(cpus=1)), "job: 0 tasks on 1 hosts"),
    ):
        with pytest.raises(ValueError, match=told):
            tp.reorder(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"timeout = 0 is not above 0"):
        tp.reorder(["machine0"], topology, tp.JobGraph.ring(8), timeout=0)
