"""The least number that is enough, against trying all of them, and how many are asked about."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from topoplace._fewest import fewest


@given(most=st.integers(0, 70), least=st.integers(1, 80))
def test_the_answer_is_the_first_number_that_is_enough(most: int, least: int) -> None:
    asked: list[int] = []

    def enough(number: int) -> bool:
        asked.append(number)
        return number >= least

    found = fewest(most, enough)
    assert found == next((number for number in range(1, most + 1) if number >= least), None)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(range(1, most + 1))
    assert len(asked) <= 2 * math.ceil(math.log2(found or most or 1)) + 1
