"""Prometheus metrics, read from the figures when prometheus-client collects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from topoplace.errors import require_package
from topoplace_hosts.figures import DecisionFigures


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
