"""The policy least-time and the rings that a collective library plans, by its own rates and by measured ones."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import collective
from topoplace.policies import LeastTime
from topoplace.testing import verify_decision

DGX1 = tp.machines.get("dgx1-v100")
NCCL = collective.PRESETS["nccl-2.30"]
MACHINES = ("dgx1-v100", "l40s-8", "dgx-h100", "summit", "torus2d-16")
OLD, SLOW_NVLINKS = "nccl-2.18", replace(NCCL, name="slow NVLinks", achieved={"NVL": 0.1})
RATES = st.sampled_from(["nccl-2.30", OLD, SLOW_NVLINKS, replace(NCCL, name="fast", achieved={"SYS": 2.0})])


def drained(topology: tp.Topology, draws: random.Random, num_free: int) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    for gpu in draws.sample(range(topology.num_gpus), topology.num_gpus - num_free):
        cluster.drain(gpu)
    return cluster


@pytest.mark.parametrize("rates", [NCCL.name, OLD, SLOW_NVLINKS], ids=["nccl-2.30", OLD, "measured"])
@pytest.mark.parametrize("name", MACHINES)
def test_no_free_set_has_better_rings(name: str, rates: collective.Rates | str) -> None:
    """In 40 states of each machine, of 2 to 6 GPUs."""
    machine, policy = tp.machines.get(name), LeastTime(rates=rates)
    for state in range(40):
        draws = random.Random(state)
        size = draws.randint(2, min(6, machine.num_gpus))
        cluster = drained(machine, draws, draws.randint(size, min(9, machine.num_gpus)))
        job = tp.JobGraph.ring(size)
        placement = policy.place(job, cluster)
        assert placement is not None
        assert placement.optimal
        verify_decision(placement, job, cluster, most_orders=200)
        best = max(
            collective.ring_bandwidth(machine, gpus, rates=rates)
            for gpus in combinations(cluster.free_gpus(), size)
        )
        assert collective.ring_bandwidth(machine, placement.gpus, rates=rates) >= best


def test_eq_2_and_rings_choose_differently() -> None:
    """On some five free GPUs, eq. 2 takes a set of four whose rings carry half of what another one's do."""
    differ: list[float] = []
    job = tp.JobGraph.ring(4)
    for busy in combinations(range(8), 3):
        cluster = tp.Cluster(DGX1)
        cluster.allocate("busy", busy)
        placements = [policy.place(job, cluster) for policy in (tp.policies.Preserve(), LeastTime())]
        of_eq2, of_rings = (collective.ring_bandwidth(DGX1, one.gpus) for one in placements if one)
        assert of_rings >= of_eq2
        differ.append(of_rings / of_eq2)
    assert max(differ) >= 2


def test_measured_rates_change_the_answer() -> None:
    """Where rings over NVLinks carry a tenth of their plan, those over PCIe carry more."""
    cluster, job = drained(DGX1, random.Random(0), 8), tp.JobGraph.ring(2)
    planned, measured = LeastTime().place(job, cluster), LeastTime(rates=SLOW_NVLINKS).place(job, cluster)
    assert planned is not None
    assert measured is not None
    assert collective.rings(DGX1, planned.gpus).path_type == "NVL"
    assert collective.rings(DGX1, measured.gpus).path_type != "NVL"
    assert measured.time < tp.communication_time(job, planned.gpus, DGX1, rates=SLOW_NVLINKS).seconds


@st.composite
def ring_jobs(draw: st.DrawFn) -> tp.JobGraph:
    """All-reduces of all tasks, of pairs of them, or of both, one after the other."""
    size = draw(st.sampled_from([2, 3, 4]))
    found = [tp.Collective("all_reduce", tuple(range(size)), draw(st.sampled_from([0.5, 4.0])), "all")]
    if draw(st.booleans()):
        found += [tp.Collective("all_reduce", (i, i + 1), 1.0, "pairs") for i in range(0, size - 1, 2)]
    return tp.JobGraph.from_collectives(size, found)


@given(ring_jobs(), RATES, st.sampled_from(["dgx1-v100", "summit", "l40s-8"]), st.integers(0, 99))
def test_times_and_bounds_are_by_the_rates(
    job: tp.JobGraph, rates: collective.Rates | str, name: str, seed: int
) -> None:
    machine = tp.machines.get(name)
    cluster = drained(machine, random.Random(seed), 5)
    placement = LeastTime(rates=rates).place(job, cluster)
    assert placement is not None
    found = tp.communication_time(job, placement.gpus, machine, rates=rates)
    assert placement.time == found.seconds == pytest.approx(placement.scores["communication_time"])
    assert (placement.times, placement.slowest) == (found.by_dimension, found.slowest)
    assert verify_decision(placement, job, cluster).unchecked == ()


@pytest.mark.parametrize("rates", [OLD, "nccl-2.30"])
def test_a_placement_by_the_rates_of_a_version_can_be_pickled(rates: str) -> None:
    machine = tp.machines.get("dgx-h100")
    policy: LeastTime = pickle.loads(pickle.dumps(LeastTime(rates=rates)))
    placement = policy.place(tp.JobGraph.ring(4), tp.Cluster(machine))
    assert placement is not None
    copied: tp.Placement = pickle.loads(pickle.dumps(placement))
    gb_per_s = collective.all_reduce_bandwidth(machine, placement.gpus, rates=rates)
    assert copied.time == placement.time == pytest.approx(1.5 / gb_per_s)


@pytest.mark.parametrize("rates", ["nccl-1", None, 2.3, ["nccl-2.30"]])
def test_unknown_rates_are_named(rates: object) -> None:
    with pytest.raises(ValueError, match=r"rates = .* is not one of nccl-2.18, "):
        tp.policies.get("least-time", rates=rates)


# ---- rings of a part of the tasks, and rings that are not alone ----------------------------------------------------


@pytest.mark.parametrize("name", ["dgx1-v100", "dgx-h100", "l40s-8"])
def test_rings_of_groups_count_in_the_time_of_a_placement(name: str) -> None:
    job = tp.JobGraph.parallel(tensor=4, data=2, traffic=tp.Traffic(tensor=100, data=1))
    placement = LeastTime().place(job, tp.Cluster(tp.machines.get(name)))
    assert placement is not None
    assert placement.scores["communication_time"] == placement.time
    assert placement.bound is None or placement.bound <= placement.time


@pytest.mark.parametrize("name", ["dgx1-v100", "dgx-h100", "l40s-8"])
def test_rings_of_one_dimension_run_at_once(name: str) -> None:
    """NVLinks carry each of them as planned, and PCIe links the sum of both."""
    machine, tasks = tp.machines.get(name), (0, 1, 2, 3)
    found = [tp.Collective(kind, tasks, 1.0, "data") for kind in ("all_reduce", "all_gather")]
    placement = LeastTime().place(tp.JobGraph.from_collectives(4, found), tp.Cluster(machine))
    assert placement is not None
    assert placement.scores["communication_time"] == pytest.approx(placement.time)
    assert placement.bound is None or placement.bound <= placement.time


def test_machines_of_more_than_64_gpus_have_a_time_by_their_ports() -> None:
    large = tp.Topology.from_links(70, [(60, 61, 40.0)], 5.0)
    job = tp.JobGraph.ring(2)
    for topology in (large, tp.Topology.cluster(large, count=2)):
        placement = LeastTime().place(job, tp.Cluster(topology))
        assert placement is not None
        assert placement.gpus == (60, 61)
        assert placement.time == placement.scores["communication_time"] == 1 / 40


def test_a_ring_goes_to_the_machine_with_the_fastest_rings_of_equal_ports() -> None:
    """All GPUs have ports of 450 GB/s into NVSwitches, but on the machine without a model rings carry 320, not 360."""
    links = [(u, v, 450.0, tp.LinkKind.NVSWITCH) for u, v in combinations(range(4), 2)]
    topology = tp.Topology.cluster([tp.Topology.from_links(4, links), tp.machines.get("dgx-h100")])
    ring, chain = (
        LeastTime().place(job, tp.Cluster(topology)) for job in (tp.JobGraph.ring(2), tp.JobGraph.chain(2))
    )
    assert ring is not None
    assert chain is not None
    assert (ring.gpus, chain.gpus) == ((4, 5), (0, 1))
    assert ring.time == 1 / 360
