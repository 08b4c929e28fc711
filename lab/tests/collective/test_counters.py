"""Recording of counters, with a library and a program of our own in the place of NVML and DCGM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from fake_counters import DMON, Library, program, put_nvml
from topoplace_lab.measuring import counters, dcgm_rates


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    put_nvml(monkeypatch, library)
    return library


@pytest.fixture
def only_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    put_nvml(monkeypatch, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def twice() -> Any:
    """A `wait` that returns True in its second call."""
    calls = iter((False, True))
    return lambda interval_s: next(calls)


def test_links_are_added_up_by_the_gpus_that_they_join(nvml: Library) -> None:
    found = counters.record(twice(), interval_s=0.01)
    assert (found.source, found.gpus, found.pairs_are_told) == ("NVML", (0, 1, 2, 3), True)
    readings = 2
    assert found.sent[0].tolist() == [0.0, 1024 * 3 * readings, 1024 * 3 * readings, 0.0]
    assert found.sent[3].tolist() == [0.0, 4096 * readings, 4096 * 5 * readings, 0.0]
    assert np.array_equal(found.by_pair(), found.sent)
    assert (found.pcie == 10_000 * found.seconds).all()
    job = tp.JobGraph.from_traffic(found.by_pair())
    assert {(a, b) for a, b, _ in job.edges} == {(0, 1), (0, 2), (1, 3), (2, 3)}


def test_traffic_to_other_gpus_or_switches_counts_evenly(nvml: Library) -> None:
    pair = counters.record(twice(), gpus=[2, 0], interval_s=0.01)
    assert pair.gpus == (2, 0)
    assert pair.sent.tolist() == [[0.0, 3072.0 * 2], [3072.0 * 2, 0.0]]
    assert pair.elsewhere.tolist() == [3072.0 * 5 * 2, 1024.0 * 3 * 2]
    nvml.switched = True
    found = counters.record(twice(), interval_s=0.01)
    assert not found.sent.any()
    assert not found.pairs_are_told
    assert found.by_pair()[3].tolist() == [1024 * 4 * 6 * 2 / 3] * 3 + [0.0]
    assert tp.JobGraph.from_traffic(found.by_pair()).num_tasks == 4


def test_dcgm_tells_rates(only_programs: Path) -> None:
    program(only_programs, "dcgmi", DMON)
    found = counters.record(twice(), interval_s=0.01)
    assert (found.source, found.gpus, found.pairs_are_told) == ("DCGM", (0, 1), False)
    assert found.elsewhere == pytest.approx([0.0, 5e6 * found.seconds], rel=1e-6)
    assert found.pcie == pytest.approx([1e6 * found.seconds, 2e6 * found.seconds], rel=1e-6)
    assert found.by_pair()[1, 0] == found.elsewhere[1]
    one = counters.CounterTraffic("DCGM", 1.0, (0, 1), np.zeros((2, 2)), np.zeros(2), np.array([3.0, 4.0]))
    assert one.by_pair().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    alone = counters.CounterTraffic("DCGM", 1.0, (0,), np.zeros((1, 1)), np.ones(1), np.ones(1))
    assert alone.by_pair().tolist() == [[0.0]]


def test_each_silent_source_is_named(only_programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        tp.TopologyError, match=r"(?s)NVML: nvidia-ml-py is not installed.*dcgmi: is not on the PATH"
    ):
        counters.record(twice())
    program(only_programs, "dcgmi", "Error: no GPU\n")
    put_nvml(monkeypatch, Library(silent=True))
    with pytest.raises(
        tp.TopologyError, match=r"(?s)NVML: no counters of NVLinks and PCIe.*dcgmi: no row `GPU"
    ):
        counters.record(twice())


def test_wrong_gpus_are_named(nvml: Library) -> None:
    for gpus, message in (
        ([0, 7], r"gpus\[1\] = 7"),
        ([0, 0], "different"),
        ([], "at least one"),
        (["a"], "gpus"),
    ):
        with pytest.raises(ValueError, match=message):
            counters.record(twice(), gpus=gpus)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="interval_s = 0"):
        counters.record(twice(), interval_s=0)


def test_rates_are_read_by_their_last_row() -> None:
    text = DMON + DMON.replace("1000000", "7").replace("N/A", "8.5")
    assert dcgm_rates.parse(text) == {0: (7.0, 8.5), 1: (2e6, 5e6)}
    for wrong in ("x", "-1", "nan", "1e30"):
        with pytest.raises(ValueError, match="line 3: "):
            dcgm_rates.parse(DMON.replace("1000000", wrong))
