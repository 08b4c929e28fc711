"""The best machine for a request, kept up to date as machines change."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace.engine.machine_state import MachineWatcher
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    from topoplace.engine.machine_class import MachineClass
    from topoplace.engine.machine_state import ClusterView, MachineState


class Option(NamedTuple):
    """One way to place a job on one machine."""

    order: tuple[float, ...]
    """Sort key, smaller is better."""
    gpus: tuple[int, ...]
    """GPU of each task, numbered as in the machine's class."""
    utility: float
    """The utility to the job."""
    details: Any
    """The argument of `MachinePolicy.scores`."""


Options = Sequence[Option]
"""The ways to place a job on a machine, best first."""


class OptionHeap(MachineWatcher):
    """The options of every machine, and the machines in the order of their best one.

    Only machines that changed are evaluated again, and machines of one class in equal states are evaluated once.
    """

    def __init__(self, view: ClusterView, evaluate: Callable[[MachineClass, MachineState], Options]) -> None:
        """evaluate: returns the options of a machine of that class in that state, () if there are none."""
        super().__init__()
        self._view = view
        self._evaluate = evaluate
        self._seen: Memo[tuple[MachineClass, MachineState], Options] = Memo()
        self._options: list[Options] = [()] * view.classes.num_machines
        self._heap: list[tuple[tuple[float, ...], int]] = []

    def options(self, machine: int) -> Options:
        """Return the options for placing the request on `machine` in its present state, best first."""
        self._refresh()
        return self._options[machine]

    def best(self, least_utility: float = -math.inf) -> tuple[int, Option] | None:
        """Return the machine and the option that is best with at least that utility; ties go to the lowest machine."""
        self._refresh()
        found: tuple[tuple[tuple[float, ...], int], Option] | None = None
        passed: list[tuple[tuple[float, ...], int]] = []
        while self._heap and (found is None or self._heap[0] < found[0]):
            entry = heapq.heappop(self._heap)
            order, machine = entry
            options = self._options[machine]
            if not options or options[0].order != order or (passed and passed[-1] == entry):
                continue  # the machine has changed since, or is here twice
            passed.append(entry)
            good = next((option for option in options if option.utility >= least_utility), None)
            if good is not None and (found is None or (good.order, machine) < found[0]):
                found = ((good.order, machine), good)
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return None if found is None else (found[0][1], found[1])

    def _refresh(self) -> None:
        while self.stale:
            machine = self.stale.pop()
            key = (self._view.classes.of(machine), self._view.state(machine))
            options = self._seen.get(key)
            if options is None:
                options = self._seen[key] = self._evaluate(*key)
            if options is self._options[machine]:
                continue
            self._options[machine] = options
            if options:
                heapq.heappush(self._heap, (options[0].order, machine))
        if len(self._heap) > 64 + 4 * len(self._options):
            current = enumerate(self._options)
            self._heap = [(options[0].order, machine) for machine, options in current if options]
            heapq.heapify(self._heap)
