"""Build mixed-integer linear programs from arrays, and solve them with the solver HiGHS."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace.errors import require_package

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Floats

Ints = NDArray[np.int64]


class Model:
    """A mixed-integer linear program under construction: minimise the cost of columns subject to bounds on rows.

    Columns are variables: binary, or continuous and not negative. Rows are constraints.
    """

    def __init__(self) -> None:
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
        count = math.prod(shape)
        numbers = np.arange(self.num_columns, self.num_columns + count).reshape(shape)
        self._cost.append(np.broadcast_to(np.asarray(cost, dtype=np.float64), shape).ravel())
        self._upper.append(np.full(count, 1.0 if binary else math.inf))
        self._binary.append(np.full(count, binary))
        self.num_columns += count
        return numbers

    def add_rows(self, count: int, *, at_least: ArrayLike = -math.inf, at_most: ArrayLike = math.inf) -> Ints:
        """Add `count` rows (constraints) with these lower and upper bounds, and return their numbers."""
        numbers = np.arange(self.num_rows, self.num_rows + count)
        self._row_lower.append(np.broadcast_to(np.asarray(at_least, dtype=np.float64), count))
        self._row_upper.append(np.broadcast_to(np.asarray(at_most, dtype=np.float64), count))
        self.num_rows += count
        return numbers

    def add(self, rows: ArrayLike, columns: ArrayLike, coefficients: ArrayLike = 1.0) -> None:
        """Set coefficients of columns in rows. The arguments are broadcast together; an entry may be set only once."""
        row, column, value = np.broadcast_arrays(rows, columns, coefficients)
        self._entries.append((row.ravel(), column.ravel(), value.ravel().astype(np.float64)))

    def to_highs(self) -> Any:
        """Return the model as a `highspy.HighsLp`, the input of HiGHS."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_, lp.offset_ = self.num_columns, self.num_rows, self.offset
        lp.col_cost_ = np.concatenate(self._cost)
        lp.col_lower_ = np.zeros(self.num_columns)
        lp.col_upper_ = np.concatenate(self._upper)
        lp.row_lower_ = np.concatenate(self._row_lower)
        lp.row_upper_ = np.concatenate(self._row_upper)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(binary)] for binary in np.concatenate(self._binary)]
        row, column, value = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(row, kind="stable")
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.searchsorted(row[order], np.arange(self.num_rows + 1)).astype(np.int32)
        lp.a_matrix_.index_ = column[order].astype(np.int32)
        lp.a_matrix_.value_ = value[order]
        return lp


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

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for option, value in (("threads", 1), ("random_seed", 0), ("mip_feasibility_tolerance", 1e-9)):
        solver.setOptionValue(option, value)
    return solver


def solve(model: Model, gap: float, seconds: float, start: Floats | None = None) -> Solution:
    """Minimise the model with HiGHS, to a relative gap or for at most `seconds`.

    start: values of all columns in a known solution, from which HiGHS starts.
    """
    import highspy

    solver = highs()
    solver.setOptionValue("mip_rel_gap", gap)
    solver.setOptionValue("mip_abs_gap", 0.0)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(model.to_highs())
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        solver.setSolution(known)
    return run(solver)


def run(solver: Any) -> Solution:
    """Solve the model that was passed to the HiGHS `solver`, and return its solution."""
    import highspy

    _run_interruptibly(solver)
    information = solver.getInfo()
    found = information.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solver.getSolution().col_value) if found else None
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Solution(values, information.mip_dual_bound, proven)


def _run_interruptibly(solver: Any) -> None:
    """Run the solver in such a way that Ctrl-C stops it within about 0.1 s and raises KeyboardInterrupt.

    highspy's own handler would print the interrupt, swallow it, and finally exit the process.
    """
    if threading.current_thread() is not threading.main_thread():
        solver.run()  # signals go to the main thread
        return
    solver.HandleUserInterrupt = True
    done = threading.Event()

    def work() -> None:
        try:
            solver.run()
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        while not done.wait(0.1):
            pass
    except BaseException:
        solver.cancelSolve()
        done.wait()
        raise
