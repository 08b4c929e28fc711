"""Divide the tasks of a job among machines by what one machine may have, with the fewest moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT64_MAX, integers, node_limit, reals, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    _Ints = NDArray[np.int32]
    _Flags = NDArray[np.uint8]
    _Units = tuple[_Ints, _Ints, _Ints]
    _Gpus = tuple[_Ints, _Flags]
    _Machines = tuple[_Ints, _Flags, _Ints]
    _Seconds = tuple[Sequence[NDArray[np.float64]], NDArray[np.float64]]

_MOST_STEPS = 100_000_000


class DivisionProblem(NamedTuple):
    """The arguments of `divide`: units of tasks, GPUs of machines, and how long a job takes by what a machine has."""

    units: ArrayLike
    """(u, t) the tasks of each unit, which one machine has as a whole; every task is in one."""
    machine_of: ArrayLike
    """(g,) the machine of each GPU."""
    usable: ArrayLike
    """(g,) bool: True for GPUs that the job may use."""
    most: ArrayLike
    """(m,) the most tasks of each machine, no more than it has usable GPUs."""
    class_of: ArrayLike
    """(m,) the class of each machine."""
    seconds_of_sets: Sequence[ArrayLike]
    """For each class, (2**n,) the least seconds with tasks on each set of a machine's n GPUs, as bit masks; empty where
    only the number of units counts."""
    seconds_of_count: ArrayLike
    """The least seconds with each number of units on a machine, from 0."""
    stays: ArrayLike = ()
    """The GPU on which each task may stay; -1 for none. Empty if no task was anywhere."""
    known: Sequence[int] = ()
    """The machines of the job."""
    order: ArrayLike = ()
    """The units in the order in which those that move get their places; empty for ascending."""

    def arrays(self) -> tuple[_Units, _Gpus, _Machines, _Seconds]:
        """Return the arguments as the kernel takes them; ValueError names what is out of range."""
        most = integers(self.most, "most")
        known = np.zeros(len(most), np.uint8)
        known[
            [_checks.integer(one, "known", ValueError, low=0, high=len(most) - 1) for one in self.known]
        ] = 1
        usable = np.ascontiguousarray(self.usable, np.bool_).view(np.uint8)
        sets = [reals(one, f"seconds_of_sets[{i}]") for i, one in enumerate(self.seconds_of_sets)]
        return (
            (
                integers(self.units, "units", ndim=2),
                integers(self.stays, "stays"),
                integers(self.order, "order"),
            ),
            (integers(self.machine_of, "machine_of"), usable),
            (most, known, integers(self.class_of, "class_of")),
            (sets, reals(self.seconds_of_count, "seconds_of_count")),
        )


class Division(NamedTuple):
    """What each machine has."""

    moves: int
    """Number of tasks that do not stay where they were."""
    seconds: float
    """No machine takes longer."""
    gpus: NDArray[np.int32] | None
    """(n,) the GPU of each task; None if a faster division has as few moves."""


class Divisions(NamedTuple):
    """The result of `divide`: the divisions with the fewest moves for each time that no machine exceeds."""

    found: list[Division]
    """The longest time first, so that moves do not decrease."""
    complete: bool
    """False if a limit ended the search before the shortest time."""
    nodes: int
    """Work, about 4,096 steps a node."""


def divide(
    problem: DivisionProblem,
    *,
    limits: ArrayLike = (),
    below: float = math.inf,
    fastest: bool = False,
    most_steps: int = _MOST_STEPS,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> Divisions | None:
    """Return the divisions with the fewest moves for each limit on the seconds of a machine; None for too many.

    Of those, each has the fewest machines besides `known`. A dynamic program over machines and units finds them.

    Args:
        limits: On the seconds, descending; empty for all that differ.
        below: What those are less than.
        fastest: Return the division with the least limit alone.
        most_steps: Limit on units x options of machines x limits.

    Raises:
        ValueError: An argument is out of range.
    """
    found, too_many, complete, nodes = _core.divide(
        *problem.arrays(),
        reals(limits, "limits"),
        below,
        fastest,
        _checks.integer(most_steps, "most_steps", ValueError, low=0, high=INT64_MAX),
        seconds(timeout),
        node_limit(max_nodes),
    )
    divisions = [Division(moves, limit, gpus if gpus.size else None) for moves, limit, gpus in found]
    return None if too_many else Divisions(divisions, complete, nodes)


def verify_division(problem: DivisionProblem, division: Division) -> bool:
    """Return True if each task has a usable GPU, units are whole, and no machine is over its room or too slow.

    The check uses only the definition and shares no code with the search. It does not check that few tasks move.

    Raises:
        ValueError: An argument is out of range.
    """
    gpus = integers(() if division.gpus is None else division.gpus, "gpus")
    return _core.verify_division(*problem.arrays(), division.moves, division.seconds, gpus) is None
