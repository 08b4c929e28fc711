"""The least number that is enough, found with few questions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable


def fewest(most: int, enough: Callable[[int], bool]) -> int | None:
    """Return the least number of 1 to `most` that is enough; None if not even `most` is.

    enough: a function of a number that, once true, is true of all larger ones. It is asked about each number at most
    once, and about no more than 2 ceil(log2(n)) + 1 of them if n is the answer.
    """
    too_few, number = 0, 1
    while too_few < most and not enough(number):
        too_few, number = number, min(2 * number, most)
    if too_few >= most:
        return None
    return bisect_left(range(number), True, lo=too_few + 1, key=enough)
