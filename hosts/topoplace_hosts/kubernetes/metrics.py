"""Counts of the scheduler and the extender, and their names in Prometheus."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Final

from topoplace_hosts.metrics import DecisionFigures, MetricTexts


@dataclass(slots=True)
class PodFigures(DecisionFigures):
    """Counts since the program started, and its present state."""

    BUCKETS_S: ClassVar[tuple[float, ...]] = (
        *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
        *(5.0, 30.0, 60.0, 300.0),
    )
    bound: int = 0
    not_bound: int = 0
    preempted: int = 0
    failed_decisions: int = 0
    """Decisions that failed with an error of this program."""
    unreadable: Counter[str] = field(default_factory=Counter[str])
    """Objects that could not be read, by kind; after unreadable "answers", all objects are listed again."""
    closed_nodes: int = 0
    """Nodes that get no pods with GPUs now, because it is unknown which of their GPUs are taken."""


_COMMON: Final = {
    "decided": "Pods decided",
    "bound": "Pods bound as they were decided",
    "not_bound": "Pods that the API server did not bind as they were decided",
}
_UNREADABLE: Final = {"unreadable": ("Objects of the API server that could not be read", "kind")}
_GAUGES: Final = {
    "fragmentation": "Fragmentation of free GPUs over sockets, 0 to 1",
    "closed_nodes": "Nodes without new pods, because it is unknown which of their GPUs are taken",
}
SCHEDULER: Final = MetricTexts(
    counters={
        **_COMMON,
        "confirmed": "Pods that a watch has shown where they were decided",
        "preempted": "Pods that were asked to end for others",
        "failed_decisions": "Decisions that ended with an error of this program",
    },
    counted={
        "deferred": ("Decisions to wait", "reason"),
        "differences": ("Differences between journal and API server, healed", "kind"),
        **_UNREADABLE,
    },
    gauges={"waiting": "Pods that wait for a decision", **_GAUGES},
    latency="Seconds from when a pod, or the last of its group, was seen until it was decided",
)
EXTENDER: Final = MetricTexts(
    counters=_COMMON,
    counted={"deferred": ("Questions after which a pod waits", "reason"), **_UNREADABLE},
    gauges=_GAUGES,
    latency="Seconds that an answer to kube-scheduler took",
)
