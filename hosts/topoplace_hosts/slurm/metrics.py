"""Counts of a placer, and their Prometheus metrics on the loopback interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from topoplace_hosts.metrics import DecisionFigures, MetricTexts, registry

ADDRESS = "127.0.0.1"
TEXTS: Final = MetricTexts(
    counters={
        "cycles": "Cycles",
        "decided": "Jobs decided",
        "confirmed": "Jobs seen on the GPUs that were decided",
        "recalled": "Jobs that did not start where they were ordered to",
    },
    counted={
        "deferred": ("Decisions to wait", "reason"),
        "given_back": ("Jobs for which Slurm chooses", "reason"),
        "differences": ("Differences between journal and Slurm, healed", "kind"),
    },
    gauges={
        "waiting": "Jobs that wait for a decision",
        "fragmentation": "Fragmentation of free GPUs over sockets, 0 to 1",
    },
    latency="Seconds from when a job could start until it was decided",
)


def served(figures: Callable[[], Figures], port: int) -> int:
    """Serve the metrics of `figures()` on a port of the loopback interface; return the port. Port 0 takes any free one.

    ModuleNotFoundError if prometheus-client is not installed, OSError if the port is taken.
    """
    made = registry(figures, TEXTS)
    from prometheus_client import start_http_server

    server, _ = start_http_server(port, addr=ADDRESS, registry=made)
    return int(server.server_port)


@dataclass(slots=True)
class Figures(DecisionFigures):
    """Counts since the placer started, and its present state; latencies begin when a job could start."""

    cycles: int = 0
    recalled: int = 0
    given_back: Counter[str] = field(default_factory=Counter[str])
    """Number of jobs given back to Slurm, by kind of reason."""
