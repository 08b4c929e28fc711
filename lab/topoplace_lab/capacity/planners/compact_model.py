"""A compact mixed-integer model of the planning problem, without the big-M constraints of the paper's model (P2).

Its linear relaxation is tighter than that of (P2), and nodes are sorted by VM type to avoid symmetric solutions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from topoplace_lab.capacity.planners.highs_model import Ints, Model
from topoplace_lab.capacity.planners.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace_lab.capacity.problem.plan import Node
    from topoplace_lab.capacity.problem.problem import Floats, Problem


class CompactModel:
    """The compact mixed-integer model of one planning problem, as columns (variables) and rows (constraints).

    x[n, w] = 1 if node n runs option w, which is a job with a VM type and a number of GPUs. first[n, w] ≤ x[n, w]
    selects the node's option that ends first, which determines the node's price. y[n, v] = 1 if node n has VM type v.
    Each job has one more column, which is 1 if the job waits. deadline: as in `Model`.
    """

    def __init__(self, problem: Problem, deadline: float = math.inf) -> None:
        self.model = model = Model(deadline)
        self.ways = ways = RunOptions.of(problem)
        shape = problem.used_nodes, len(ways)
        self._x = model.add_columns(shape, ways.tardiness - problem.idle * ways.gpus, binary=True)
        self._first = first = model.add_columns(shape, ways.deployment, binary=False)
        types = problem.used_nodes, len(problem.catalogue)
        self._y = y = model.add_columns(types, problem.idle * problem.num_gpus, binary=True)
        self._waits = waits = model.add_columns((problem.num_jobs,), problem.waiting, binary=False)
        self._nodes(problem, first, y)
        once = model.add_rows(problem.num_jobs, at_least=1.0, at_most=1.0)
        model.add(once, waits)
        model.add(once[ways.job], self._x)

    def nodes(self, values: Floats) -> list[Node]:
        """Return the rented nodes and their jobs that the values of all columns stand for."""
        return self.ways.nodes(values[self._x] > 0.5)

    def values(self, nodes: Sequence[Node]) -> Floats:
        """Return the values of all columns that stand for a plan with these nodes; `used_nodes` nodes are needed."""
        rows = zip(self.ways.job.tolist(), self.ways.vm_type.tolist(), self.ways.gpus.tolist(), strict=True)
        way_of = {row: way for way, row in enumerate(rows)}
        values = np.zeros(self.model.num_columns)
        values[self._waits] = 1.0
        for n, node in enumerate(sorted(nodes, key=lambda node: node.vm_type)):
            ways = [way_of[job, node.vm_type, gpus] for job, gpus in node.jobs]
            values[self._x[n, ways]] = 1.0
            values[self._first[n, min(ways, key=lambda way: self.ways.deployment[way])]] = 1.0
            values[self._y[n, node.vm_type]] = 1.0
            values[self._waits[[job for job, _ in node.jobs]]] = 0.0
        return values

    def _nodes(self, problem: Problem, first: Ints, y: Ints) -> None:
        model, ways = self.model, self.ways
        num_types = len(problem.catalogue)
        pair = ways.job * num_types + ways.vm_type
        order = np.arange(num_types)
        for n in range(problem.used_nodes):
            model.add(model.add_rows(1, at_least=1.0, at_most=1.0), y[n])
            room = model.add_rows(num_types, at_most=0.0)
            model.add(room[ways.vm_type], self._x[n], ways.gpus)
            model.add(room, y[n], -problem.num_gpus)
            on_type = model.add_rows(problem.num_jobs * num_types, at_most=0.0)
            model.add(on_type[pair], self._x[n])
            model.add(on_type, np.tile(y[n], problem.num_jobs), -1.0)
            runs = model.add_rows(len(ways), at_most=0.0)
            model.add(runs, first[n])
            model.add(runs, self._x[n], -1.0)
            pays = model.add_rows(num_types, at_least=0.0, at_most=0.0)
            model.add(pays[ways.vm_type], first[n])
            model.add(pays, y[n], -1.0)
            if n:
                ordered = model.add_rows(1, at_least=0.0)
                model.add(ordered, y[n], order)
                model.add(ordered, y[n - 1], -order)
