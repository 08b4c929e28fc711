"""A compact model without big-M: its relaxation is tighter than (P2)'s, and equal nodes have a fixed order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.capacity.planners.highs_model import Ints, Model
from topoplace.capacity.planners.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.capacity.problem.plan import Node
    from topoplace.capacity.problem.problem import Floats, Problem


class CompactModel:
    """The compact model of one problem.

    x[n, w] = 1 if node n runs option w (job, type, GPUs). first[n, w] ≤ x[n, w] selects the job that ends first, whose
    deployment cost is the node's. y[n, v] = 1 if node n has type v. Each job has one more column for waiting.
    """

    def __init__(self, problem: Problem) -> None:
        self.ways = ways = RunOptions.of(problem)
        self.model = model = Model()
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
        """Return the nodes of the plan that the column values encode."""
        return self.ways.nodes(values[self._x] > 0.5)

    def values(self, nodes: Sequence[Node]) -> Floats:
        """Return the column values that encode a plan with `used_nodes` nodes, in the order the model requires."""
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
