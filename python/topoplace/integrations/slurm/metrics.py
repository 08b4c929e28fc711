"""Prometheus metrics of a placer, on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from topoplace.errors import require_package
from topoplace.integrations.slurm.placer.figures import BUCKETS_S, Figures

ADDRESS = "127.0.0.1"


def served(figures: Callable[[], Figures], port: int) -> int:
    """Serve the metrics of `figures()` on a port of the loopback interface, 0 for any; return the port.

    ModuleNotFoundError if prometheus-client is not installed, OSError if the port is taken.
    """
    require_package("prometheus_client", "--metrics")
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Metrics(figures))
    server, _ = start_http_server(port, addr=ADDRESS, registry=registry)
    return int(server.server_port)


class Metrics:
    """A collector for prometheus-client that reads the figures when they are asked for."""

    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Any]:
        """Yield all metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        now = self._figures()
        for name, text, value in (
            ("cycles", "Cycles", now.cycles),
            ("decided", "Jobs decided", now.decided),
            ("confirmed", "Jobs seen on the GPUs that were decided", now.confirmed),
            ("recalled", "Jobs that did not start where they were told", now.recalled),
        ):
            yield CounterMetricFamily(f"topoplace_{name}", text, value=value)
        for name, text, label, counts in _counted(now):
            family = CounterMetricFamily(f"topoplace_{name}", text, labels=[label])
            for key, count in sorted(counts.items()):
                family.add_metric([key], count)
            yield family
        yield GaugeMetricFamily("topoplace_waiting", "Jobs that wait for a decision", value=now.waiting)
        text = "Fragmentation of free GPUs over sockets, 0 to 1"
        yield GaugeMetricFamily("topoplace_fragmentation", text, value=now.fragmentation)
        text = "Seconds from when a job could start until it was decided"
        yield HistogramMetricFamily(
            "topoplace_latency_seconds", text, buckets=_buckets(now), sum_value=now.latency_sum_s
        )


def _counted(now: Figures) -> Iterator[tuple[str, str, str, Mapping[str, int]]]:
    yield "deferred", "Decisions to wait", "reason", now.deferred
    yield "given_back", "Jobs for which Slurm chooses", "reason", now.given_back
    yield "differences", "Differences between journal and Slurm, healed", "kind", now.differences


def _buckets(now: Figures) -> list[tuple[str, float]]:
    """Return the cumulative counts of the histogram by upper bound."""
    total = 0
    found: list[tuple[str, float]] = []
    for bound, count in zip([*map(str, BUCKETS_S), "+Inf"], now.latencies, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
