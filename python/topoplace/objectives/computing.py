"""How long a job computes in a step, from the arithmetic that it states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from topoplace.topology.accelerators import USUAL_EFFICIENCY, peak_tflop_per_s

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology


def compute_seconds(job: JobGraph, gpus: Iterable[int], topology: Topology) -> float | None:
    """Return how long the slowest GPU computes in a step, at the usual share of its peak; None if not known."""
    if not job.tflop:
        return None
    least = min(
        (peak_tflop_per_s(one.model or "") or 0.0) * one.fraction
        for one in map(topology.gpus.__getitem__, gpus)
    )
    return job.tflop / (least * USUAL_EFFICIENCY) if least else None
