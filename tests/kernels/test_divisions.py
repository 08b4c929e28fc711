"""`divide` against every way to give units to machines, and its arguments."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from topoplace import kernels

GPUS = 3


@st.composite
def problems(draw: st.DrawFn) -> kernels.DivisionProblem:
    """Up to four machines of three GPUs, and up to five tasks, some of which may stay on a GPU."""
    machines = draw(st.integers(1, 4))
    usable = draw(st.lists(st.booleans(), min_size=GPUS * machines, max_size=GPUS * machines))
    room = np.array(usable).reshape(machines, GPUS).sum(axis=1).tolist()
    gpus = [gpu for gpu, is_usable in enumerate(usable) if is_usable]
    stays = draw(st.permutations([*gpus, -1, -1, -1]))[: draw(st.integers(1, 5))]
    seconds = st.integers(0, 3).map(float)
    return kernels.DivisionProblem(
        units=np.arange(len(stays))[:, None],
        machine_of=np.repeat(np.arange(machines), GPUS),
        usable=usable,
        most=[draw(st.integers(0, most)) for most in room],
        class_of=[draw(st.integers(0, 1)) for _ in range(machines)],
        seconds_of_sets=[(), draw(st.lists(seconds, min_size=1 << GPUS, max_size=1 << GPUS))],
        seconds_of_count=draw(st.lists(seconds, min_size=GPUS + 1, max_size=GPUS + 1)),
        stays=stays if draw(st.booleans()) else (),
        known=draw(st.lists(st.integers(0, machines - 1), unique=True)),
        order=draw(st.permutations(range(len(stays)))),
    )


def machine_options(problem: kernels.DivisionProblem, machine: int) -> list[tuple[int, int, float]]:
    """The units, the tasks that stay and the seconds of every set of GPUs that a machine may give."""
    of_machine = np.flatnonzero(np.array(problem.machine_of) == machine)
    sets = problem.seconds_of_sets[np.array(problem.class_of)[machine]]
    stays, found = set(np.array(problem.stays).tolist()), [(0, 0, 0.0)]
    for mask in range(1, 1 << GPUS):
        gpus = [gpu for i, gpu in enumerate(of_machine.tolist()) if mask >> i & 1]
        if not all(np.array(problem.usable)[gpus]) or len(gpus) > np.array(problem.most)[machine]:
            continue
        seconds = float(
            np.array(sets if len(sets) else problem.seconds_of_count)[mask if len(sets) else len(gpus)]
        )
        found.append((len(gpus), len(stays.intersection(gpus)), seconds))
    return found


def fewest(problem: kernels.DivisionProblem, limit: float) -> tuple[float, int]:
    """The moves and the new machines of the best division within the limit."""
    count, best = len(np.array(problem.units)), (math.inf, 0)
    machines = range(len(np.array(problem.most)))
    for chosen in product(*(machine_options(problem, machine) for machine in machines)):
        units, stay, seconds = zip(*chosen, strict=True)
        if sum(units) == count and max(seconds) <= limit:
            new = sum(
                bool(own) and machine not in problem.known
                for machine, own in zip(machines, units, strict=True)
            )
            best = min(best, (count - sum(stay), new))
    return best


@given(problems())
def test_no_division_moves_fewer_tasks_or_adds_fewer_machines(problem: kernels.DivisionProblem) -> None:
    divisions = kernels.divide(problem)
    assert divisions is not None
    assert divisions.complete
    found = {one.seconds: one for one in divisions.found}
    for limit in range(4):
        within = [seconds for seconds in found if seconds <= limit]
        moves, new = fewest(problem, limit)
        assert bool(within) == (moves < math.inf)
        if not within or found.get(limit) is None:
            continue
        division = found[limit]
        assert division.moves == moves
        if division.gpus is not None:
            assert kernels.verify_division(problem, division)
            machines = set(np.array(problem.machine_of)[division.gpus].tolist())
            assert len(machines.difference(problem.known)) == new
    fastest = kernels.divide(problem, fastest=True)
    assert fastest is not None
    assert [one[:2] for one in fastest.found] == [one[:2] for one in divisions.found[-1:]]


def of_equal_machines(machines: int) -> kernels.DivisionProblem:
    """A ring over all GPUs of machines that are faster the more tasks they have."""
    gpus = 8 * machines
    return kernels.DivisionProblem(
        np.arange(gpus)[:, None],
        np.repeat(np.arange(machines), 8),
        np.ones(gpus, np.bool_),
        np.full(machines, 8),
        np.zeros(machines, np.int64),
        [()],
        np.linspace(9, 1, 9),
    )


def test_limits_on_work_end_the_search_with_what_is_found() -> None:
    problem = of_equal_machines(300)
    whole = kernels.divide(problem)
    assert whole is not None
    assert whole.complete
    assert len(whole.found) == 8
    part = kernels.divide(problem, max_nodes=whole.nodes // 2)
    assert part is not None
    assert not part.complete
    assert 0 < len(part.found) < 8
    assert part.found[0].seconds == whole.found[0].seconds
    assert kernels.verify_division(problem, part.found[-1])
    assert kernels.divide(problem, most_steps=1_000_000) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("units", [[0], [0]], r"units\[1\] = 0 is listed twice"),
        ("most", [9], r"most\[0\] = 9 is not in 0\.\.8"),
        ("stays", [8] * 8, r"stays\[0\] = 8 is not in -1\.\.7"),
        ("known", [1], "known = 1"),
        ("class_of", [1], r"class_of\[0\] = 1"),
        ("seconds_of_count", [-1.0] * 9, r"seconds_of_count\[0\]"),
        ("seconds_of_sets", [[0.0, 1.0]], "machine 0 has 8 GPUs"),
    ],
)
def test_what_is_out_of_range_is_named(name: str, value: Any, message: str) -> None:
    problem = of_equal_machines(1)._replace(**{name: value})
    with pytest.raises(ValueError, match=message):
        kernels.divide(problem)
