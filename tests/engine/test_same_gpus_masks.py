"""The sets of local GPUs that are tried for a job with `same_gpus`, against every set."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from topoplace.engine.gangs import rules
from topoplace.engine.gangs.offers import MachineOffer, Offers
from topoplace.engine.machines.machine_class import mask_of, members


def offers_of(usable: list[int]) -> Offers:
    kinds = [MachineOffer(i, mask, (), mask.bit_count()) for i, mask in enumerate(usable)]
    return Offers(np.arange(len(kinds)), np.arange(len(kinds)), kinds, None)


@given(st.lists(st.integers(0, (1 << 7) - 1), max_size=12), st.integers(1, 5), st.integers(1, 4))
def test_the_most_frequent_sets_come_first(usable: list[int], count: int, machines: int) -> None:
    every = [mask_of(gpus) for gpus in combinations(range(7), count)]
    number = {mask: sum(mask & one == mask for one in usable) for mask in every}
    enough = sorted(
        (mask for mask in every if number[mask] >= machines),
        key=lambda mask: (-number[mask], list(members(mask))),
    )
    assert rules._masks(offers_of(usable), count, machines) == enough[:16]


def test_few_sets_of_a_machine_with_many_are_tried() -> None:
    usable = (1 << 16) - 1  # 12,870 sets of eight
    assert rules._masks(offers_of([usable, usable >> 1 << 1, 0xFF00]), 8, 1) == [0xFF00, 0x1FE, 0xFF]
