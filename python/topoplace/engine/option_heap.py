"""A heap of the machines, ordered by each machine's best option for one job request, and updated incrementally."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace.engine.machine_state import MachineWatcher
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    from topoplace.engine.machine_class import MachineClass
    from topoplace.engine.machine_state import ClusterView, MachineKind, MachineState
    from topoplace.engine.request import JobRequest


class Option(NamedTuple):
    """One way to place a whole job on one machine."""

    order: tuple[float, ...]
    """Sort key; smaller is better."""
    gpus: tuple[int, ...]
    """The GPU of each task, by its local number on the machine."""
    utility: float
    """The utility to the job; larger is better."""
    details: Any
    """Policy-specific data, later passed to `MachinePolicy.scores`."""


Options = Sequence[Option]
"""The ways to place a whole job on one machine, best first."""


class OptionHeap(MachineWatcher):
    """The options of every machine for one job request, with the machines in a heap ordered by their best option.

    Only machines that changed are evaluated again. Machines of equal class and state are evaluated once.
    """

    def __init__(
        self,
        request: JobRequest,
        view: ClusterView,
        evaluate: Callable[[MachineClass, MachineState], Options],
    ) -> None:
        """Start with no machine evaluated.

        evaluate: returns the options of a machine of the given class and state, best first; () if there are none.
        """
        super().__init__()
        self._request = request
        self._view = view
        self._evaluate = evaluate
        self._seen: Memo[MachineKind, Options] = Memo()
        self._options: list[Options] = [()] * view.classes.num_machines
        self._heap: list[tuple[tuple[float, ...], int]] = []
        self._is_whole = True
        """False while entries are taken out; an interrupt leaves it False, and the heap is made again."""

    def options(self, machine: int) -> Options:
        """Return the ways to place the request on `machine` in its present state, best first."""
        self._refresh()
        return self._options[machine]

    def best(self, least_utility: float = -math.inf) -> tuple[int, Option] | None:
        """Return (machine, option) of the best option with a utility of at least `least_utility`, else None.

        Ties go to the machine with the lowest number.
        """
        self._refresh()
        self._is_whole = False
        found: tuple[tuple[tuple[float, ...], int], Option] | None = None
        passed: list[tuple[tuple[float, ...], int]] = []
        while self._heap and (found is None or self._heap[0] < found[0]):
            entry = heapq.heappop(self._heap)
            order, machine = entry
            options = self._options[machine]
            if not options or options[0].order != order or (passed and passed[-1] == entry):
                continue  # the entry is outdated, or a duplicate
            passed.append(entry)
            good = next((option for option in options if option.utility >= least_utility), None)
            if good is not None and (found is None or (good.order, machine) < found[0]):
                found = ((good.order, machine), good)
        for entry in passed:
            heapq.heappush(self._heap, entry)
        self._is_whole = True
        return None if found is None else (found[0][1], found[1])

    def _refresh(self) -> None:
        stale, kind_of, known, seen = self.stale, self._view.kind, self._options, self._seen
        needs_hosts = self._request.needs_hosts
        for machine in tuple(stale):
            kind = kind_of(machine)
            if not needs_hosts:
                kind = kind.without_hosts  # one for more machines
            options = seen.get(kind)
            if options is None:
                options = seen[kind] = self._evaluate(kind.machine_class, kind.state)
            if options is not known[machine]:
                if options:
                    heapq.heappush(self._heap, (options[0].order, machine))
                known[machine] = options
            stale.discard(machine)  # last: an interrupt leaves it to be evaluated
        if not self._is_whole or len(self._heap) > 64 + 4 * len(self._options):
            current = enumerate(self._options)
            heap = [(options[0].order, machine) for machine, options in current if options]
            heapq.heapify(heap)
            self._heap, self._is_whole = heap, True
