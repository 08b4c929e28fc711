"""`nvidia-allocator` prefers what go-gpuallocator's rules say: the best set of the best division of all free GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.engine.machines.machine_class import mask_of
from topoplace_lab.policies.nvidia_allocator import Scores

MACHINES = ("dgx1-v100", "dgx1-p100", "summit", "dgx-h100", "l40s-8")
DGX1 = tp.machines.get("dgx1-v100")


def divisions(gpus: tuple[int, ...], size: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the ways to divide GPUs into sets of `size`; one set may be smaller."""
    if len(gpus) <= size:
        yield [gpus] if gpus else []
        return
    first, *others = gpus
    rest = len(gpus) % size
    for length in (size, rest) if rest else (size,):
        for some in combinations(others, length - 1):
            left = tuple(gpu for gpu in others if gpu not in some)
            yield from ([(first, *some), *more] for more in divisions(left, size))


@given(st.sampled_from(MACHINES), st.data())
def test_the_best_set_of_the_best_of_all_divisions_is_preferred(name: str, data: st.DataObject) -> None:
    topology = tp.machines.get(name)
    scores = topology.derived(Scores)
    some = st.lists(st.integers(0, topology.num_gpus - 1), min_size=2, unique=True)
    free = tuple(sorted(data.draw(some)))
    size = data.draw(st.integers(1, len(free)))
    required = set(data.draw(st.lists(st.sampled_from(free), max_size=min(2, size), unique=True)))

    def holds(one: tuple[int, ...]) -> bool:
        return len(one) == size and required <= set(one)

    possible = (every for every in divisions(free, size) if any(map(holds, every)))
    best = max(possible, key=lambda every: sum(map(scores.of_set, every)))
    expected = max(filter(holds, best), key=scores.of_set)
    assert scores.preferred(mask_of(free), size, mask_of(required)) == expected


def test_pairs_score_by_their_links() -> None:
    """GPUs 0 and 3 of a DGX-1V have two NVLinks, 0 and 1 one; all share the root of a socket."""
    scores = DGX1.derived(Scores)
    same_switch, same_socket = (scores.of_set((0, 1)), scores.of_set((0, 3)))
    assert same_switch - 100 in (20, 50)
    assert same_socket - 200 in (10, 20)
    assert tp.machines.get("dgx-h100").derived(Scores).of_set((0, 1)) < 100  # over an NVSwitch


def test_it_takes_the_first_machine_with_room_and_leaves_good_sets() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(DGX1, 2))
    cluster.allocate("five", (0, 1, 2, 4, 5))
    placement = tp.policies.get("nvidia-allocator").place(tp.JobGraph.ring(4), cluster)
    assert placement is not None
    assert set(placement.gpus) == {8, 9, 10, 11}
    one = tp.Cluster(DGX1)
    one.allocate("two", (1, 6))
    pair = tp.policies.get("nvidia-allocator").place(tp.JobGraph.ring(2), one)
    assert pair is not None
    assert DGX1.link(*pair.gpus).lanes == 2


@pytest.mark.parametrize("name", ["torus2d-16", "dgx2"])
def test_the_search_on_a_large_machine_ends(name: str) -> None:
    """There are 2.6 million divisions of sixteen GPUs into sets of four."""
    topology = tp.machines.get(name)
    chosen = topology.derived(Scores).preferred((1 << 16) - 1, 4)
    assert len(chosen) == 4
    assert topology.derived(Scores).preferred((1 << 16) - 1, 4) == chosen
