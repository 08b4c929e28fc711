"""`OptionHeap.best` against a look at every option of every machine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from topoplace.engine.machine_state import MachineKind, MachineState
from topoplace.engine.option_heap import Option, OptionHeap

MACHINES = 4
UTILITIES = st.sampled_from([0.0, 0.25, 0.5, 0.75])
OPTIONS = st.lists(st.tuples(st.integers(0, 3).map(float), UTILITIES), max_size=3).map(sorted)
STEPS = st.lists(st.tuples(st.integers(0, MACHINES - 1), OPTIONS) | UTILITIES, max_size=30)


@example([[(0.0, 0.0), (3.0, 0.5)], [(1.0, 0.5)], [(2.0, 0.5)], []], [0.5])
@example([[(0.0, 0.0), (1.0, 0.5)], [(0.0, 0.0), (3.0, 0.5)], [], []], [0.5])
@given(st.lists(OPTIONS, min_size=MACHINES, max_size=MACHINES), STEPS)
def test_the_best_option_above_the_floor(start: list[list[tuple[float, float]]], steps: list[Any]) -> None:
    """Machines change between questions, and what a high floor passes over is there again for a lower one."""
    states: list[int] = []  # of each machine, the version of its options
    of_version: list[tuple[Option, ...]] = []
    kind_of_version: list[MachineKind] = []

    def set_options(machine: int, options: list[tuple[float, float]]) -> None:
        states[machine] = len(of_version)
        kind_of_version.append(MachineKind(None, MachineState(len(of_version), (), 0.0)))
        of_version.append(
            tuple(Option((order,), (i,), utility, None) for i, (order, utility) in enumerate(options))
        )

    view: Any = SimpleNamespace(
        classes=SimpleNamespace(num_machines=MACHINES),
        kind=lambda machine: kind_of_version[states[machine]],
    )
    request: Any = SimpleNamespace(needs_hosts=False)
    heap = OptionHeap(request, view, lambda _, state: of_version[state.free])
    for machine in range(MACHINES):
        states.append(0)
        set_options(machine, start[machine])
        heap.stale.add(machine)
    for step in (*steps, 0.25, 0.0):
        if isinstance(step, tuple):
            set_options(*step)
            heap.stale.add(step[0])
            continue
        good = [
            (option.order, machine, i)
            for machine in range(MACHINES)
            for i, option in enumerate(of_version[states[machine]])
            if option.utility >= step
        ]
        found = heap.best(step)
        expected = min(good, default=None)
        assert (found and (found[1].order, found[0], found[1].gpus[0])) == expected
