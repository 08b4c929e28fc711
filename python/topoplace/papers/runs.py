"""Simulations of a reproduction, one after another or in several processes, with a progress bar."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from topoplace import _checks
from topoplace.simulate.progress import Progress

Result = TypeVar("Result")

SEEDS = 10
"""Number of seeds of every simulated row, in a full run."""
QUICK_SEEDS = 3
"""Number of seeds in a quick run: with fewer, there is no interval to speak of."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How simulations run: in how many processes, and whether a progress bar shows how many are done.

    processes: more than 1 starts processes that import the main module again, as `multiprocessing` does with "spawn";
    a script of your own needs `if __name__ == "__main__":`. Raises ValueError unless it is 1 to 1024.
    """

    processes: int = 1
    progress: bool = False

    def __post_init__(self) -> None:
        _checks.integer(self.processes, "jobs", ValueError, low=1, high=1024)

    def results(self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]) -> list[Result]:
        """Return the results of `function` with each tuple of arguments, in their order.

        With several processes, the function is one of a module, and arguments and results can be pickled.
        """
        found: list[Result] = []
        with Progress(len(calls), enabled=self.progress, every=1) as shown:
            for result in self._each(function, calls):
                found.append(result)
                shown.update(len(found))
        return found

    def _each(self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]) -> Iterator[Result]:
        if self.processes == 1 or len(calls) <= 1:
            yield from (function(*call) for call in calls)
            return
        with ProcessPoolExecutor(self.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(function, *zip(*calls, strict=True))
