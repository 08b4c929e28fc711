"""Lower bounds on the time of gangs, in C++, beside their definitions in plain Python and measured placements."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

import gang_bounds_oracle as oracle
import topoplace as tp
from gang_bounds_oracle import Case
from small_clusters import FAMILIES, linked_cluster, small_cluster, small_job
from topoplace import LinkKind, _core
from topoplace.deciding import bounds, ranked_sets
from topoplace.deciding.gang_topology import rooms_of
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import members
from topoplace.objectives.communication import communication_time, measured

RATES = "nccl-2.30"


@cache
def large(name: str) -> tp.Topology:
    """Four machines, two in a rack, in one of which they may have an NVLink domain or rails."""
    if name == "gb200-nvl72":
        return tp.machines.get(name)
    model, _, kind = name.partition(" ")
    leaf = tp.Level("leaf", ("b", "a", "b", "a"), 50.0, rail=kind == "rails", pxn=kind == "rails")
    if kind == "domains":
        leaf = tp.Level("leaf", ("b", "a", "b", "a"), kind=LinkKind.NVSWITCH)
    spine = tp.Level("spine", ("s",) * 4, 50.0, 2.0)
    fabric = tp.Fabric(("m0", "m1", "m2", "m3"), (leaf, spine))
    return tp.Topology.cluster(tp.machines.get(model), fabric=fabric)


LARGE = ("dgx1-v100", "dgx-h100", "dgx-h100 rails", "dgx-h100 domains", "gb200-nvl72")


def cluster_of(draws: random.Random) -> tp.Cluster:
    """Return a cluster with some GPUs in use."""
    kind = draws.choice([*FAMILIES, "linked", *LARGE])
    if kind == "linked":
        return linked_cluster(draws)
    if kind not in LARGE:
        return small_cluster(kind, draws)
    cluster = tp.Cluster(large(kind))
    count = cluster.topology.num_gpus
    if busy := draws.sample(range(count), draws.randrange(count * 2 // 3)):
        cluster.allocate("busy", busy)
    return cluster


def job_of(size: int, draws: random.Random) -> tp.JobGraph:
    """Return a job of groups of one size in each dimension, or of any collectives."""
    if draws.random() < 0.5:
        return small_job(size, draws)
    found: list[tp.Collective] = []
    for dimension in ("one", "other", "third")[: draws.randint(1, 3)]:
        inner = draws.choice([one for one in range(2, size + 1) if size % one == 0])
        for kind in draws.sample(
            ["all_reduce", "all_gather", "broadcast", "all_to_all", "send"], draws.choice([1, 1, 2])
        ):
            is_near, is_equal = draws.random() < 0.5, draws.random() < 0.7
            for i in range(size // inner):
                tasks = range(i * inner, (i + 1) * inner) if is_near else range(i, size, size // inner)
                shares = (
                    (1.0, *(draws.random() for _ in tasks[1:]))
                    if kind == "all_to_all" and not is_equal
                    else ()
                )
                gigabytes = 1.7 if is_equal else draws.uniform(0.1, 3.0)
                found.append(tp.Collective(kind, tuple(tasks), gigabytes, dimension, shares))
    return tp.JobGraph.from_collectives(size, found)


def case_of(seed: int) -> Case | None:
    """Return a gang and machines with room for it, or for a part of it; None without any."""
    draws = random.Random(seed)
    view = cluster_of(draws).view(ClusterView)
    job = job_of(draws.randint(2, 12), draws)
    inner = draws.choice([one for one in range(1, job.num_tasks + 1) if job.num_tasks % one == 0])
    order = (
        [*range(job.num_tasks)] if draws.random() < 0.7 else draws.sample(range(job.num_tasks), job.num_tasks)
    )
    units = [order[i : i + inner] for i in range(0, len(order), inner)]
    has_groups = draws.random() < 0.3
    if has_groups:
        job = job.with_(groups=tuple(tp.Group(tuple(unit), within="machine") for unit in units))
    request = view.request(job)
    offers = offers_of(lambda _, state: state.free.bit_count(), request, view)
    if not len(offers):
        return None
    return Case(job, units, has_groups, rooms_of(request, offers, view), view, RATES)


def least_of(case: Case) -> tuple[float, float]:
    """Return the least seconds of all placements, and of those that divide no unit."""
    return _core.least_seconds(
        bounds.gang_limits(case.view.cluster.topology, RATES),
        case.rooms.native,
        case.rooms.own_class,
        case.job.traffic_arrays.native,
        np.array(case.units, np.int32),
        case.has_groups,
    )


@example(57566)  # rings of two dimensions cross machines
@given(st.integers(0, 2**32))
def test_bounds_are_those_of_the_definitions(seed: int) -> None:
    case = case_of(seed)
    if case is None:
        return
    job, units, view = case.job, np.array(case.units, np.int32), case.view
    ends, *columns = _core.exchanges_of(job.traffic_arrays.native, units, rings=True)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    by_phase = [{(a, b): gb for a, b, gb in rows[i:j]} for i, j in pairwise([0, *ends])]
    assert by_phase == oracle.exchanges(case, rings=True)
    assert [list(one) for one in by_phase] == [sorted(one) for one in by_phase]
    assert bounds.largest_flows(job, units) == oracle.largest_flows(case)
    least = least_of(case)
    assert least == pytest.approx(oracle.least_seconds(case), rel=1e-12)
    limits, expected = bounds.machine_limits(job, units, case.rooms, view, RATES), oracle.Limits(case)
    assert limits.native.are_rings == expected.are_rings
    assert limits.native.are_groups == (len(case.units[0]) > 1 and case.has_groups)
    of_counts = [expected.of_count(count) for count in range(len(units) + 1)]
    assert limits.native.of_counts(len(units)).tolist() == pytest.approx(of_counts, rel=1e-12)
    for machine in range(view.classes.num_machines):
        assert limits.native.of_sets(machine).tolist() == pytest.approx(expected.of_sets(machine), rel=1e-12)
    assert bounds.least_if_split(job, view, RATES) == pytest.approx(oracle.if_split(case), rel=1e-12)


@given(st.integers(0, 2**32))
def test_a_job_that_fits_one_machine(seed: int) -> None:
    case = case_of(seed)
    if case is None:
        return
    request, classes = case.view.request(case.job), case.view.classes.classes
    large = [one for one in classes if one.num_gpus >= request.size]
    if not large or not all(map(ranked_sets.is_alike, classes)):
        return
    timing = ranked_sets.Timing(0.01, RATES)
    seconds = [ranked_sets.of_any(one, request, timing)[0].seconds for one in large]
    least = bounds.least_seconds_of_one(request, case.view, RATES)
    assert least == pytest.approx(oracle.of_one(case, seconds), rel=1e-12)
    for gpus in placements(case, random.Random(seed), 5):
        assert seconds_of(case, gpus) >= least


def placements(case: Case, draws: random.Random, count: int) -> list[list[int]]:
    """Return the GPU of each task in placements on free GPUs that divide no unit; none if one has no room."""
    found: list[list[int]] = []
    states = [case.view.state(machine).free for machine in range(case.view.classes.num_machines)]
    for _ in range(count):
        free = [
            draws.sample([gpus[local] for local in members(mask)], mask.bit_count())
            for gpus, mask in zip(case.view.classes.gpus_of, states, strict=True)
        ]
        placed: dict[int, int] = {}
        for unit in case.units:
            have_room = [own for own in free if len(own) >= len(unit)]
            if not have_room:
                return found
            own = draws.choice(have_room[: draws.randint(1, len(have_room))])
            placed.update((task, own.pop()) for task in unit)
        found.append([placed[task] for task in range(case.job.num_tasks)])
    return found


def seconds_of(case: Case, gpus: list[int]) -> float:
    return measured(case.job, np.array(gpus), case.view.cluster.topology, rates=RATES).seconds


@given(st.integers(0, 2**32))
def test_no_placement_is_faster_than_a_bound(seed: int) -> None:
    case = case_of(seed)
    if case is None:
        return
    job, units, view = case.job, np.array(case.units, np.int32), case.view
    least = least_of(case)
    limits = bounds.machine_limits(job, units, case.rooms, view, RATES).native
    of_counts, draws = limits.of_counts(len(units)), random.Random(seed)
    for gpus in placements(case, draws, 8):
        seconds = seconds_of(case, gpus)
        assert seconds >= least[1]
        masks = view.classes.by_machine(gpus)
        for machine, mask in masks.items() if len(masks) > 1 else ():
            assert seconds >= of_counts[mask.bit_count() // len(case.units[0])]
            of_sets = limits.of_sets(machine)
            assert not len(of_sets) or seconds >= of_sets[mask]
        split = bounds.least_if_split(job, view, RATES)
        assert len(masks) == 1 or math.isinf(split) or seconds >= split
    singles = case._replace(units=[[task] for task in range(job.num_tasks)])
    for gpus in placements(singles, draws, 8):
        assert seconds_of(case, gpus) >= least[0] or case.has_groups


def test_what_is_out_of_range_is_refused() -> None:
    view = tp.Cluster(large("dgx1-v100")).view(ClusterView)
    request = view.request(tp.JobGraph.ring(4))
    rooms = rooms_of(request, offers_of(lambda _, state: state.free.bit_count(), request, view), view)
    job, limits = request.job.traffic_arrays.native, bounds.gang_limits(view.cluster.topology, RATES)
    for units, message in (
        ([[0, 1], [2, 2]], r"units\[3\] = 2: not each task once"),
        ([[0, 1], [2, 4]], r"units\[3\] = 4: not each task once"),
        ([[0, 1]], r"tasks\[2\] = 2: out of range"),
        ([[], []], "units of 0 of 0 tasks"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.exchanges_of(job, np.array(units, np.int32), rings=True)
    singles = np.arange(4, dtype=np.int32)[:, None]
    with pytest.raises(ValueError, match="own_class has 1 entries, not 3"):
        _core.least_seconds(limits, rooms.native, [0], job, singles, machine_groups=False)
    with pytest.raises(ValueError, match="own_class has a number other than 0 and 1"):
        _core.MachineLimits(limits, rooms.native, [0, 2, 0], job, singles, machine_groups=False)
    with pytest.raises(ValueError, match=r"tasks\[1\] = 1: out of range"):
        _core.least_if_split(limits, job, 1, communicates=True)
    with pytest.raises(ValueError, match="machine = 4: there is no such machine"):
        _core.MachineLimits(limits, rooms.native, [0, 0, 0], job, singles, machine_groups=False).of_sets(4)


def _divisions(tasks: tuple[int, ...], size: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield each way to divide tasks among machines of this size, all of which are full."""
    if not tasks:
        yield []
        return
    for others in combinations(tasks[1:], size - 1):
        left = tuple(task for task in tasks[1:] if task not in others)
        for more in _divisions(left, size):
            yield [(tasks[0], *others), *more]


@pytest.mark.parametrize("name", ["dgx-h100", "minsky", "dgx1-v100", "l40s-8"])
@pytest.mark.parametrize(
    ("tensor", "data", "share", "room"),
    [
        (2, 4, 1.0, 4),
        (4, 2, 1.0, 4),
        (2, 6, 1.0, 4),
        (3, 4, 0.2, 4),
        (4, 3, 5.0, 4),
        (8, 2, 1.0, 8),
        (2, 2, 1.0, 2),
    ],
)
def test_hybrid_jobs_on_full_machines_are_as_fast_as_any_division(
    name: str, tensor: int, data: int, share: float, room: int
) -> None:
    """A machine is passed by rings of the one dimension or of the other, as a block of tasks has few of both."""
    machine, size = tp.machines.get(name), tensor * data
    if room > machine.num_gpus:
        pytest.skip("the machine has fewer GPUs")
    count, n = size // room, machine.num_gpus
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=count, network=12.5))
    for number in range(count if room < n else 0):
        cluster.allocate(f"other-{number}", range(n * number + room, n * (number + 1)))
    usual = tp.JobGraph.parallel(tensor=tensor, data=data).collectives
    scaled = [replace(one, gigabytes=share) if one.dimension == "tensor" else one for one in usual]
    job = tp.JobGraph.from_collectives(size, scaled)
    best = math.inf
    for division in _divisions(tuple(range(size)), room):
        gpus = [0] * size
        for number, tasks in enumerate(division):
            for i, task in enumerate(tasks):
                gpus[task] = number * n + i
        best = min(best, communication_time(job, gpus, cluster.topology).seconds)
    placement = tp.place(job, cluster)
    assert placement is not None
    assert placement.bound is not None
    assert placement.time is not None
    assert placement.bound <= best
    if name == "dgx-h100":  # any GPUs of a machine take the same time
        assert placement.time == pytest.approx(best)
        assert placement.optimal
