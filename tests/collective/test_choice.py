"""The best set of free GPUs, against the definition tried on all sets."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from nccl_machines import CPU, machine
from topoplace import collective
from topoplace.collective import Wanted, grades
from topoplace.collective.rated_sets import masks_of, members_of, rated_sets
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import deadline

DGX1 = tp.machines.get("dgx1-v100")
PCIE = machine("skylake", [[2, 1], [2, 1]], nvlinks={(0, 1): 12, (3, 4): 12})


def bits(gpus: Iterable[int]) -> int:
    return sum(1 << gpu for gpu in gpus)


def carried(topology: tp.Topology, gpus: tuple[int, ...]) -> float:
    return collective.ring_bandwidth(topology, gpus) if len(gpus) > 1 else 0.0


def left(topology: tp.Topology, free: Iterable[int], sizes: range) -> float:
    best = [max((carried(topology, one) for one in combinations(sorted(free), k)), default=0) for k in sizes]
    return sum(best)


def key(
    topology: tp.Topology, gpus: tuple[int, ...], stays: Iterable[int], sizes: range
) -> tuple[float, ...]:
    """The definition: steps of 10 %, what is lost to the GPUs that stay, the GPU list."""
    gb_per_s = carried(topology, gpus)
    step = math.floor(math.log(gb_per_s, 1.1) + 1e-9) if gb_per_s else -math.inf
    lost = left(topology, stays, sizes) - left(topology, set(stays) - set(gpus), sizes)
    return -step, round(lost, 6), *gpus


@pytest.mark.parametrize(
    ("topology", "sizes"),
    [(DGX1, range(2, 9)), (PCIE, range(2, 7)), (tp.machines.get("cubemesh-16"), range(2, 5))],
    ids=lambda one: getattr(one, "name", None),
)
def test_the_best_set_is_that_of_the_definition(topology, sizes):
    draws = random.Random(1)
    for _ in range(25):
        stays = draws.sample(range(topology.num_gpus), draws.randint(2, min(7, topology.num_gpus)))
        free = draws.sample(stays, draws.randint(2, len(stays)))
        required = draws.sample(free, draws.randint(0, 1))
        size = draws.randint(max(len(required), 1), len(free))
        wanted = Wanted(size, bits(free), bits(required), bits(stays))
        sets = [one for one in combinations(sorted(free), size) if set(required) <= set(one)]
        keys = sorted(key(topology, gpus, stays, sizes) for gpus in sets)
        ranked = list(collective.ranked_sets(topology, wanted))
        assert [one.gpus for one in ranked] == [one[2:] for one in keys]
        assert collective.best_set(topology, wanted) == ranked[0]
        assert ranked[0].gb_per_s == carried(topology, ranked[0].gpus)
        assert ranked[0].lost_gb_per_s == pytest.approx(keys[0][1])
        assert all(one.exact for one in ranked)


def test_what_is_left_is_the_best_of_each_size():
    assert collective.left_bandwidth(DGX1, range(8)) == 40 + 40 + 80 + 40 + 80 + 80 + 120
    assert collective.left_bandwidth(DGX1, [0, 3]) == 40
    assert collective.left_bandwidth(DGX1, [5]) == 0


def test_the_second_pair_leaves_the_others_more():
    """0 and 3 have as fast a ring as 0 and 4, but the free GPUs lose 20 GB/s less without the latter."""
    chosen = collective.best_set(DGX1, Wanted(2, 255, 0, 255))
    before = collective.left_bandwidth(DGX1, range(8))
    assert chosen is not None
    assert (chosen.gpus, chosen.gb_per_s) == ((0, 4), collective.ring_bandwidth(DGX1, [0, 3]))
    assert chosen.lost_gb_per_s == before - collective.left_bandwidth(DGX1, [1, 2, 3, 5, 6, 7])
    assert chosen.lost_gb_per_s < before - collective.left_bandwidth(DGX1, [1, 2, 4, 5, 6, 7])


def test_without_rings_only_what_is_lost_counts():
    chosen = collective.best_set(DGX1, Wanted(3, 255, 0, 255, by_rings=False))
    lost = {
        gpus: collective.left_bandwidth(DGX1, range(8))
        - collective.left_bandwidth(DGX1, set(range(8)) - set(gpus))
        for gpus in combinations(range(8), 3)
    }
    assert chosen is not None
    assert chosen.gpus == min(lost, key=lambda gpus: (lost[gpus], gpus))


@pytest.mark.parametrize("name", ["dgx2", "dgx-a100", "dgx-h100", "hgx-b200"])
def test_sets_below_nvswitches_are_rated_once(name):
    topology = tp.machines.get(name)
    sets = rated_sets(topology, "nccl-2.30")
    draws = random.Random(2)
    for _ in range(30):
        gpus = tuple(sorted(draws.sample(range(topology.num_gpus), draws.randint(2, topology.num_gpus))))
        assert sets.gb_per_s(np.array([bits(gpus)], np.uint64))[0] == collective.ring_bandwidth(
            topology, gpus
        )


def test_too_few_gpus_have_no_set():
    assert collective.best_set(DGX1, Wanted(3, 0b11, 0, 255)) is None
    assert collective.best_set(DGX1, Wanted(1, 0b1111, 0b11, 255)) is None
    assert list(collective.ranked_sets(DGX1, Wanted(3, 0b11, 0, 255))) == []


def test_of_too_many_sets_near_ones_are_rated():
    """Forty GPUs in rows of four with NVLinks: a row is found, and not called the best of all 658,008 sets."""
    rows = [(4 * row + a, 4 * row + b, 40.0) for row in range(10) for a, b in combinations(range(4), 2)]
    topology = tp.Topology.from_links(40, rows, 6.0)
    everything = (1 << 40) - 1
    chosen = collective.best_set(topology, Wanted(4, everything & ~0b1, 0, everything))
    assert chosen is not None
    assert not chosen.exact
    assert (len(chosen.gpus), chosen.gpus[0] // 4) == (4, chosen.gpus[3] // 4)
    assert chosen.gb_per_s == collective.ring_bandwidth(topology, chosen.gpus) > 40
    with_one = collective.best_set(topology, Wanted(4, everything, 0b1, everything))
    assert with_one is not None
    assert with_one.gpus == (0, 1, 2, 3)


def test_steps_of_bandwidths():
    """Equal grades are less than 10 % apart, and what is further apart has different grades, in order."""
    draws = random.Random(3)
    speeds = sorted(draws.uniform(0.5, 900) for _ in range(300))
    graded = collective.grades(np.array(speeds)).tolist()
    assert graded == sorted(graded)
    for (a, of_a), (b, of_b) in combinations(zip(speeds, graded, strict=True), 2):
        assert of_a < of_b if b > 1.1 * a * (1 + 1e-9) else of_b - of_a <= 1
        assert of_a != of_b or b <= 1.1 * a * (1 + 1e-6)
    assert collective.grades(np.array([0.0, 1e-6]))[0] < collective.grades(np.array([1e-6]))[0]


MEASURED = replace(collective.PRESETS["nccl-2.30"], achieved={"NVL": 1.3, "SYS": 0.5})
POWER9 = machine(
    "power9",
    [[1, 1], [1, 1]],
    sm=70,
    pcie=3,
    nvlinks={(0, 1): 2, (2, 3): 2} | {(gpu, CPU): 2 for gpu in range(4)},
)


@pytest.mark.parametrize(
    "topology",
    [DGX1, PCIE, POWER9, *map(tp.machines.get, ("summit", "l40s-8", "dgx-h100"))],
    ids=["dgx1", "pcie", "power9", "summit", "l40s", "h100"],
)
@pytest.mark.parametrize("rates", ["nccl-2.30", "nccl-2.18", MEASURED], ids=["2.30", "2.18", "measured"])
def test_no_set_carries_more_than_its_bound(topology: tp.Topology, rates: collective.Rates | str) -> None:
    masks = np.array([mask for mask in range(1 << topology.num_gpus) if mask.bit_count() > 1], np.uint64)
    sets = rated_sets(topology, rates)
    assert (sets.gb_per_s(masks) <= sets.native.bounds(masks)).all()


@pytest.mark.parametrize("name", ["torus2d-16", "cubemesh-16"])
@pytest.mark.parametrize("rates", ["nccl-2.30", MEASURED], ids=["2.30", "measured"])
def test_few_sets_of_an_idle_machine_are_rated(name: str, rates: collective.Rates | str) -> None:
    topology = tp.Topology.from_json(tp.machines.get(name).to_json())
    choice = collective.best_set(topology, Wanted(8, 0xFFFF, 0, 0xFFFF), rates=rates)
    assert choice is not None
    assert choice.exact
    sets = rated_sets(topology, rates)
    assert (sets.native.fastest(masks_of(range(16), 8)) >= 0).sum() < 50  # of 12,870


@pytest.mark.parametrize("name", ["torus2d-16", "cubemesh-16", "dgx2"])
def test_the_best_of_few_rated_sets_is_the_best_of_all(name: str) -> None:
    topology = tp.machines.get(name)
    sets, draws = rated_sets(topology, "nccl-2.30"), random.Random(name)
    for _ in range(12):
        stays = draws.sample(range(16), 9)
        required = draws.sample(stays, draws.randint(0, 2))
        wanted = Wanted(draws.randint(5, 8), bits(stays), bits(required), bits(stays))
        first = next(collective.ranked_sets(topology, wanted))
        assert collective.best_set(topology, wanted) == first
        masks = np.array([bits(one) for one in combinations(stays, wanted.size)], np.uint64)
        assert grades(np.array([first.gb_per_s])) >= grades(
            sets.gb_per_s(masks[masks & bits(required) == bits(required)]).max(keepdims=True)
        )


@pytest.mark.parametrize("name", ["torus2d-16", "cubemesh-16", "dgx2", "l40s-8"])
@pytest.mark.parametrize("share", [1.0, 0.99, 0.5])
def test_the_leading_sets_have_the_rates_of_all(name: str, share: float) -> None:
    topology = tp.machines.get(name)
    sets, draws = rated_sets(topology, "nccl-2.30"), random.Random(name)
    for count in (1, 3, 16):
        masks = masks_of(sorted(draws.sample(range(topology.num_gpus), 8)), draws.randint(2, 6))
        everything, found = sets.gb_per_s(masks), sets.native.leading(masks, count, share)
        floor = share * np.sort(everything)[-min(count, len(masks))]
        assert (found[everything >= floor] == everything[everything >= floor]).all()
        assert ((found == everything) | (found == -1)).all()


def test_a_set_for_a_job_without_rings_has_its_bandwidth() -> None:
    topology = tp.machines.get("cubemesh-16")
    choice = collective.best_set(topology, Wanted(6, 0xFFFF, 0, 0xFFFF, by_rings=False))
    assert choice is not None
    assert choice.gb_per_s == collective.ring_bandwidth(topology, choice.gpus)


def test_bits():
    assert members_of(0b101001) == (0, 3, 5)


def test_rating_many_sets_ends_with_the_time_of_the_caller() -> None:
    sets = rated_sets(tp.Topology.from_links(16, [(i, (i + 1) % 16, 25.0) for i in range(16)]), "nccl-2.30")
    masks = masks_of(range(16), 4)
    with deadline(1e-9), pytest.raises(DeadlineError):
        sets.gb_per_s(masks)
    assert len(sets.gb_per_s(masks)) == math.comb(16, 4)


@pytest.mark.parametrize(
    ("free", "message"),
    [([8], r"free\[0\] = 8"), ([0, 0], r"free\[1\] = 0 appears twice"), ([-1], "free"), ([0.5], "free")],
)
def test_wrong_free_gpus_are_named(free: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collective.left_bandwidth(DGX1, free)


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        ({}, "channel_gb_per_s has no key 0, for GPUs of an unknown compute capability"),
        ({90: (20.0,)}, "channel_gb_per_s has no key 0"),
        ({0: ()}, r"channel_gb_per_s\[0\] = \[\] is not a list of descending rates"),
        ({0: (20.0,), 80: (3.0, 20.0)}, r"channel_gb_per_s\[80\] = \[3.0, 20.0\] is not"),
        ({0: (20.0, "x")}, r"channel_gb_per_s\[0\]\[1\] = 'x'"),
        ({0: (20.0,), "80": (20.0,)}, "a key of channel_gb_per_s = '80'"),
        ({0: (20.0,), -1: (20.0,)}, "a key of channel_gb_per_s = -1"),
    ],
)
def test_channels_that_no_gpu_could_have_are_named(channels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(collective.PRESETS["nccl-2.30"], channel_gb_per_s=channels)


def test_rates_are_checked_and_may_lack_a_cpu() -> None:
    with pytest.raises(ValueError, match="gb_per_s"):
        collective.Rates("mine", {"nvlink2": -1.0}, 1.2, {0: (20.0,)})
    with pytest.raises(ValueError, match="intel_overhead"):
        replace(collective.PRESETS["nccl-2.30"], intel_overhead=float("nan"))
    known = collective.PRESETS["nccl-2.30"]
    without = {name: rate for name, rate in known.gb_per_s.items() if not name.startswith("socket")}
    assert collective.ring_bandwidth(DGX1, [0, 3], rates=replace(known, gb_per_s=without)) == 40
