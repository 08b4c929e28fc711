"""Build mixed-integer linear programs from arrays, and solve them with the solver HiGHS."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace.errors import require_package

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Floats

Ints = NDArray[np.int64]

_SOLVER_START: Final = 12
"""HiGHS first looks at its clock after up to this many times the CPU time that building the model took."""

_GRACE: Final = 0.01
"""Seconds after the deadline in which HiGHS may still return what it found."""


class OutOfTimeError(Exception):
    """Raised by a model that cannot be built, or by a solver that cannot begin, before a deadline."""


class Model:
    """A mixed-integer linear program under construction: minimise the cost of columns subject to bounds on rows.

    Columns are variables: binary, or continuous and not negative. Rows are constraints. deadline: value of
    `time.monotonic()` after which adding rows or columns raises `OutOfTimeError`.
    """

    def __init__(self, deadline: float = math.inf) -> None:
        self.deadline = deadline
        self._begun = time.thread_time()
        self._cost: list[Floats] = []
        self._upper: list[Floats] = []
        self._binary: list[NDArray[np.bool_]] = []
        self._entries: list[tuple[Ints, Ints, Floats]] = []
        self._row_lower: list[Floats] = []
        self._row_upper: list[Floats] = []
        self.num_columns = 0
        self.num_rows = 0
        self.offset = 0.0
        """Constant added to the objective."""

    def add_columns(self, shape: tuple[int, ...], cost: ArrayLike = 0.0, *, binary: bool) -> Ints:
        """Add columns (variables) and return their numbers as an array of this shape.

        cost: objective coefficients, broadcast to the shape. binary: 0 or 1; otherwise any number from 0.
        """
        self._look_at_clock()
        count = math.prod(shape)
        numbers = np.arange(self.num_columns, self.num_columns + count).reshape(shape)
        self._cost.append(np.broadcast_to(np.asarray(cost, dtype=np.float64), shape).ravel())
        self._upper.append(np.full(count, 1.0 if binary else math.inf))
        self._binary.append(np.full(count, binary))
        self.num_columns += count
        return numbers

    def add_rows(self, count: int, *, at_least: ArrayLike = -math.inf, at_most: ArrayLike = math.inf) -> Ints:
        """Add `count` rows (constraints) with these lower and upper bounds, and return their numbers."""
        self._look_at_clock()
        numbers = np.arange(self.num_rows, self.num_rows + count)
        self._row_lower.append(np.broadcast_to(np.asarray(at_least, dtype=np.float64), count))
        self._row_upper.append(np.broadcast_to(np.asarray(at_most, dtype=np.float64), count))
        self.num_rows += count
        return numbers

    def add(self, rows: ArrayLike, columns: ArrayLike, coefficients: ArrayLike = 1.0) -> None:
        """Set coefficients of columns in rows. The arguments are broadcast together; an entry may be set only once."""
        row, column, value = np.broadcast_arrays(rows, columns, coefficients)
        self._entries.append((row.ravel(), column.ravel(), value.ravel().astype(np.float64)))

    def pass_to(self, solver: Any) -> None:
        """Give the finished model and the time that is left to a HiGHS solver.

        Raises OutOfTimeError if the solver could not look at its clock before the deadline.
        """
        import highspy

        start = _SOLVER_START * (time.thread_time() - self._begun)
        self._look_at_clock(start)
        row, column, value = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(row, kind="stable")
        ends = np.cumsum(np.bincount(row, minlength=self.num_rows))
        solver.passModel(
            self.num_columns,
            self.num_rows,
            len(row),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            self.offset,
            np.concatenate(self._cost),
            np.zeros(self.num_columns),
            np.concatenate(self._upper),
            np.concatenate(self._row_lower),
            np.concatenate(self._row_upper),
            np.concatenate(([0], ends)).astype(np.int32),
            column[order].astype(np.int32),
            value[order],
            np.concatenate(self._binary).astype(np.int32),
        )
        self._look_at_clock(start)
        solver.setOptionValue("time_limit", self.deadline - time.monotonic() - start)

    def _look_at_clock(self, seconds: float = 0.0) -> None:
        """Raise OutOfTimeError unless more than `seconds` are left."""
        if time.monotonic() + seconds >= self.deadline:
            raise OutOfTimeError


@dataclass(frozen=True, slots=True)
class Solution:
    """The solver's answer: the best solution found, and a lower bound."""

    values: Floats | None = field(repr=False)
    """Values of the columns; None if no solution was found."""
    bound: float
    """Lower bound on the cost of any solution."""
    proven: bool
    """True if the requested gap was reached."""


def highs() -> Any:
    """Return a new HiGHS solver, silent and single-threaded; raise ImportError if HiGHS is not installed."""
    require_package("highspy", "planning by a model")
    import highspy

    class Silent(highspy.Highs):
        """A solver that is silent before its first call: from HiGHS 1.16 on, enabling callbacks prints a banner."""

        def enableCallbacks(self) -> None:  # noqa: N802
            self.silent()
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    solver: Any = Silent()  # type: ignore[no-untyped-call]
    solver.silent()
    for option, value in (("threads", 1), ("random_seed", 0), ("mip_feasibility_tolerance", 1e-9)):
        solver.setOptionValue(option, value)
    return solver


def solve(model: Model, gap: float, start: Floats | None = None) -> Solution:
    """Minimise the model with HiGHS, to a relative gap or until the model's deadline.

    start: values of all columns in a known solution, from which HiGHS starts. Raises OutOfTimeError if too little time
    is left to begin.
    """
    import highspy

    solver = highs()
    solver.setOptionValue("mip_rel_gap", gap)
    solver.setOptionValue("mip_abs_gap", 0.0)
    model.pass_to(solver)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        solver.setSolution(known)
    return run(solver, model.deadline)


def run(solver: Any, deadline: float = math.inf) -> Solution:
    """Solve the model that was passed to the HiGHS `solver`, and return its solution.

    deadline: value of `time.monotonic()` after which a busy solver is abandoned. There is then no solution, and the
    solver must not be used again.
    """
    import highspy

    if not _ends(solver, deadline):
        return Solution(None, -math.inf, proven=False)
    information = solver.getInfo()
    found = information.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solver.getSolution().col_value) if found else None
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Solution(values, information.mip_dual_bound, proven)


def _ends(solver: Any, deadline: float) -> bool:
    """Run the solver in its own thread, and return True if it ends by the deadline; Ctrl-C is obeyed.

    HiGHS may work for seconds without a look at its clock or at `cancelSolve`. Its thread then ends later; Python waits
    for it before it exits. highspy's own handler of Ctrl-C would print the interrupt, swallow it, and exit the process.
    """
    solver.HandleUserInterrupt = True
    done = threading.Event()

    def work() -> None:
        try:
            solver.run()
        finally:
            done.set()

    threading.Thread(target=work).start()
    last = deadline + _GRACE
    try:
        while not done.wait(min(0.1, max(last - time.monotonic(), 0.0))):
            if time.monotonic() >= last:
                return False
        return True
    finally:
        if not done.is_set():
            solver.cancelSolve()
