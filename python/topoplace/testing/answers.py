"""The answers of a policy as text: equal answers give equal text, in every process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace.engine.plan import QueuedJob

if TYPE_CHECKING:
    from topoplace.engine.plan import Explanation, Plan
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


def placed_text(placement: Placement | None) -> str:
    """Return all that a policy decides about a placement, as text."""
    if placement is None:
        return "no placement"
    scores = ", ".join(f"{name} = {value!r}" for name, value in sorted(placement.scores.items()))
    hosts = [(share.machine, share.cpus, share.memory_gb) for share in placement.hosts]
    parts = {
        " remote": placement.remote,
        " drives": placement.drives,
        " hosts": hosts,
        " optimal": placement.optimal,
    }
    stated = "".join(f"{name} {value}" for name, value in parts.items() if value)
    return f"GPUs {placement.gpus}{stated} {{{scores}}}"


def explained_text(explanation: Explanation) -> str:
    """Return an explanation as text."""
    return f"{[*map(placed_text, explanation.candidates)]} {explanation.refusal}"


def plan_text(plan: Plan) -> str:
    """Return a plan as text."""
    start = [(job_id, placed_text(placement)) for job_id, placement in plan.start]
    return f"start {start}, defer {plan.defer}, reject {plan.reject}"


def queue_of(jobs: Sequence[JobGraph]) -> tuple[QueuedJob, ...]:
    """Return the jobs as a queue, in which a job comes every second."""
    return tuple(QueuedJob(f"queued-{i}", job, float(i)) for i, job in enumerate(jobs))


def refused_text(error: Exception) -> str:
    """Return an exception as text."""
    return f"{type(error).__name__}: {error}"
