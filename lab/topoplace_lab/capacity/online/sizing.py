"""The number of controllers that a cluster needs, by its load: the fewest whose decisions one server makes in time.

The paper leaves such a criterion to future work (section VI). This one extends its section V-B: one server solves the
problems of all controllers as an M/G/1 queue. Fewer controllers plan more nodes at once, which is cheaper but takes
longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from topoplace import _checks


def response(mean: float, square: float, rate: float) -> float:
    """Return the mean seconds that a request spends waiting and served in an M/G/1 queue (Pollaczek-Khinchine).

    mean, square: mean and mean square of the service time in seconds. rate: requests per second. Infinite if the
    server is always busy. ValueError for a negative argument.
    """
    for name, value in (("mean", mean), ("square", square), ("rate", rate)):
        _checks.real(value, name, ValueError)
    return mean + rate * square / (2 * (1 - rate * mean)) if rate * mean < 1 else float("inf")


def fewest_controllers(
    num_nodes: int, moments: Mapping[int, tuple[float, float]], rate: float, most_seconds: float
) -> int | None:
    """Return the fewest controllers for `num_nodes` nodes whose mean response is within `most_seconds` seconds.

    The result is None if no number of controllers is fast enough.

    Args:
        moments: Mean and mean square of the seconds of one decision, by the number of nodes that a controller plans.
            Only numbers that divide `num_nodes` count.
        rate: Decisions per second of the whole cluster, about two per submitted job.

    Raises:
        ValueError: For an argument out of range.
    """
    _checks.integer(num_nodes, "num_nodes", ValueError, low=1, high=1 << 30)
    _checks.instance(moments, Mapping, "moments", ValueError)
    _checks.real(most_seconds, "most_seconds", ValueError)
    fast = [
        num_nodes // _checks.integer(nodes, "moments: nodes", ValueError, low=1, high=1 << 30)
        for nodes, (mean, square) in moments.items()
        if num_nodes % nodes == 0 and response(mean, square, rate) <= most_seconds
    ]
    return min(fast, default=None)
