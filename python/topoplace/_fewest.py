"""Search of the least number that is enough, with few tests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable


def fewest(most: int, enough: Callable[[int], bool]) -> int | None:
    """Return the least number of 1 to `most` that is enough; None if not even `most` is.

    enough: a function of a number; if it is true of one, it is true of all larger ones. It is called at most once for
    each number and, if n is the answer, at most 2 ceil(log2(n)) + 1 times.
    """
    too_few, number = 0, 1
    while too_few < most and not enough(number):
        too_few, number = number, min(2 * number, most)
    if too_few >= most:
        return None
    return bisect_left(range(number), True, lo=too_few + 1, key=enough)
