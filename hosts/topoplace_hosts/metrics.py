"""Counts of programs inside schedulers (decisions, reasons, latencies, differences), and their Prometheus metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from topoplace.errors import require_package


class MetricTexts(NamedTuple):
    """The names of figures for people, by field; only figures named here are metrics."""

    counters: Mapping[str, str]
    counted: Mapping[str, tuple[str, str]]
    """For counters by kind: the text, and the name of the label for the kind."""
    gauges: Mapping[str, str]
    latency: str


class Metrics:
    """A collector for prometheus-client that reads the figures on each request."""

    def __init__(self, figures: Callable[[], DecisionFigures], texts: MetricTexts) -> None:
        self._figures = figures
        self._texts = texts

    def collect(self) -> Iterator[Any]:
        """Yield all metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        now, texts = self._figures(), self._texts
        for name, text in texts.counters.items():
            yield CounterMetricFamily(f"topoplace_{name}", text, value=getattr(now, name))
        for name, (text, label) in texts.counted.items():
            family = CounterMetricFamily(f"topoplace_{name}", text, labels=[label])
            for kind, count in sorted(dict(getattr(now, name)).items()):
                family.add_metric([kind], count)
            yield family
        for name, text in texts.gauges.items():
            yield GaugeMetricFamily(f"topoplace_{name}", text, value=getattr(now, name))
        yield HistogramMetricFamily(
            "topoplace_latency_seconds", texts.latency, buckets=_buckets(now), sum_value=now.latency_sum_s
        )


def registry(figures: Callable[[], DecisionFigures], texts: MetricTexts) -> Any:
    """Return a prometheus-client registry with these metrics; ModuleNotFoundError if the package is missing."""
    require_package("prometheus_client", "--metrics")
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry()
    made.register(Metrics(figures, texts))
    return made


def page(figures: Callable[[], DecisionFigures], texts: MetricTexts) -> Callable[[], bytes]:
    """Return a function that makes the page for Prometheus; ModuleNotFoundError without prometheus-client."""
    made = registry(figures, texts)
    from prometheus_client import generate_latest

    return lambda: generate_latest(made)


def _buckets(now: DecisionFigures) -> list[tuple[str, float]]:
    """Return the cumulative counts of the histogram by upper bound."""
    total = 0
    found: list[tuple[str, float]] = []
    for bound, count in zip([*map(str, now.BUCKETS_S), "+Inf"], now.latencies, strict=True):
        total += count
        found.append((bound, float(total)))
    return found


@dataclass(slots=True)
class DecisionFigures:
    """Counts since a program started, and its present state; each scheduler's integration adds fields."""

    BUCKETS_S: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
    """Upper bounds of the latency histogram in seconds."""
    decided: int = 0
    confirmed: int = 0
    deferred: Counter[str] = field(default_factory=Counter[str])
    """Decisions to wait, by kind of reason."""
    differences: Counter[str] = field(default_factory=Counter[str])
    """Differences between journal and scheduler that were resolved, by kind."""
    waiting: int = 0
    """Jobs or pods that wait for a decision now."""
    fragmentation: float = 0.0
    """Fragmentation of the free GPUs over sockets now (SC'17, eq. 5), 0..1."""
    latencies: list[int] = field(init=False)
    """Number of decisions for each interval of latency: one up to each of `BUCKETS_S`, and one above them."""
    latency_sum_s: float = 0.0

    def __post_init__(self) -> None:
        self.latencies = [0] * (len(self.BUCKETS_S) + 1)

    def note_latency(self, seconds: float) -> None:
        """Count the latency of one decision."""
        self.latencies[bisect_left(self.BUCKETS_S, seconds)] += 1
        self.latency_sum_s += seconds
