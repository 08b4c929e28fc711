"""The simulator refuses plans that name jobs which do not wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import topoplace as tp
from topoplace.policies import Baseline, QueuedJob
from topoplace_lab.simulate import Workload, simulate


@pytest.mark.parametrize("field", ["defer", "reject"])
def test_a_plan_names_only_waiting_jobs(field: str) -> None:
    class NamesAStranger(Baseline):
        def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> tp.Plan:
            plan = super().plan(queue, cluster, now)
            return replace(plan, **{field: (("stranger", tp.Refusal("no")),)})

    workload = Workload([tp.JobGraph.ring(2)], [0.0], [1.0])
    with pytest.raises(ValueError, match="policy 'baseline': 'stranger' in its plan is not a waiting job"):
        simulate(tp.machines.get("minsky"), workload, NamesAStranger())
