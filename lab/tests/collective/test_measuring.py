"""Measured next to planned bandwidths, and rates that measurements correct."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fake_nccl_tests
import topoplace as tp
from topoplace import collective
from topoplace_lab import measuring
from topoplace_lab.measuring import Efficiency, MeasuredSet, Measurements
from topoplace_lab.measuring.nccl_tests import AllReducePerf

DGX1 = tp.machines.get("dgx1-v100")
RATES = collective.PRESETS["nccl-2.30"]
MEASURED = Measurements(
    DGX1,
    RATES,
    (
        MeasuredSet((0, 3), "NVL", 40.0, 36.0),
        MeasuredSet((0, 1, 2, 3), "NVL", 80.0, 76.0),
        MeasuredSet((6, 7), "NVL", 40.0, 32.0),
        MeasuredSet((0, 7), "SYS", 6.0, 9.0),
        MeasuredSet((0, 1, 2, 6), "NVB", 20.0, None, "exit code 3"),
    ),
)


# ---- rates with factors --------------------------------------------------------------------------------------


def test_what_is_achieved_corrects_rings_by_their_worst_path() -> None:
    rates = replace(RATES, achieved={"NVL": 0.9, "SYS": 0.5})
    for gpus, gb_per_s in (([0, 3], 36), ([0, 1, 2, 3], 72), ([0, 7], 3), ([0, 1, 2, 6], 20)):
        assert collective.ring_bandwidth(DGX1, gpus, rates=rates) == pytest.approx(gb_per_s)
        plan = collective.rings(DGX1, gpus, rates=rates)
        assert plan.gb_per_s == pytest.approx(gb_per_s)
        assert sum(ring.channels * ring.gb_per_s for ring in plan.rings) == pytest.approx(gb_per_s)
    assert collective.ring_bandwidth(DGX1, [0, 3]) == 40
    assert (
        collective.optimal_bandwidth(DGX1, [0, 3], rates=rates) == 104
    )  # a bound by links, not a plan of rings


def test_what_is_achieved_may_change_the_choice() -> None:
    """Pairs across sockets that beat those inside by measurement are chosen."""
    slow_nvlinks = replace(RATES, achieved={"NVL": 0.1})
    wanted = collective.Wanted(size=2, free=0b10001001, required=0, stays=0b10001001)
    best, measured_best = (collective.best_set(DGX1, wanted, rates=rates) for rates in (RATES, slow_nvlinks))
    assert best is not None
    assert measured_best is not None
    assert (best.gpus, best.gb_per_s) == ((0, 3), 40.0)
    assert (measured_best.gpus, measured_best.gb_per_s) == ((0, 7), 6.0)


@pytest.mark.parametrize(
    ("achieved", "message"),
    [
        ({"NVX": 1.0}, "a key of achieved = 'NVX'"),
        ({"NVL": 0.0}, r"achieved\['NVL'\] = 0"),
        ({"SYS": "1"}, "'1'"),
    ],
)
def test_wrong_shares_are_named(achieved: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(RATES, achieved=achieved)


@pytest.mark.parametrize("rates", [*collective.PRESETS.values(), replace(RATES, achieved={"PIX": 0.8})])
def test_rates_survive_json(rates: collective.Rates) -> None:
    again = collective.Rates.from_json(rates.to_json())
    assert again.to_json() == rates.to_json()
    assert (again.gb_per_s, again.channel_gb_per_s, again.achieved) == (
        rates.gb_per_s,
        rates.channel_gb_per_s,
        rates.achieved,
    )
    assert collective.ring_bandwidth(DGX1, range(8), rates=again) == collective.ring_bandwidth(
        DGX1, range(8), rates=rates
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "format and version"),
        ({"version": True}, "format and version"),
        ({"more": 1}, "unknown key 'more'"),
        ({"gb_per_s": []}, r"gb_per_s = \[\] is not an object"),
        ({"gb_per_s": {"nvlink2": "20"}}, r"gb_per_s\['nvlink2'\]"),
        ({"name": ""}, "name = ''"),
        ({"intel_overhead": None}, "intel_overhead = None"),
        ({"achieved": {"NVL": -1}}, r"achieved\['NVL'\]"),
        ({"channel_gb_per_s": {}}, "has no key 0"),
        ({"channel_gb_per_s": {"0": [1.0], "x": [1.0]}}, r"channel_gb_per_s\['x'\]: the key"),
        ({"channel_gb_per_s": {"0": []}}, r"channel_gb_per_s\[0\] = \[\] is not"),
        ({"channel_gb_per_s": {"0": [3.0, 3.0]}}, "is not a list of descending rates"),
        ({"channel_gb_per_s": {"0": ["a"]}}, r"channel_gb_per_s\[0\]\[0\] = 'a'"),
    ],
)
def test_other_json_is_no_rates(change: dict[str, Any], message: str) -> None:
    text = json.dumps(json.loads(RATES.to_json()) | change)
    with pytest.raises(ValueError, match=message):
        collective.Rates.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", "1"])
def test_other_texts_are_no_rates(text: str) -> None:
    for read in (collective.Rates.from_json, measuring.rates_from_json, Measurements.from_json):
        with pytest.raises(ValueError, match=r"not JSON|is not an object|format and version"):
            read(text)


# ---- measurements --------------------------------------------------------------------------------------------


def test_a_factor_is_the_median_of_its_path_type() -> None:
    assert MEASURED.efficiencies() == (
        Efficiency("NVL", 0.9, 0.8, 0.95, 3),
        Efficiency("SYS", 1.5, 1.5, 1.5, 1),
    )
    rates = MEASURED.corrected_rates()
    assert rates.achieved == {"NVL": 0.9, "SYS": 1.5}
    assert rates.name == "nccl-2.30 as measured on dgx1-v100"
    assert collective.ring_bandwidth(DGX1, [0, 7], rates=rates) == 9
    assert collective.ring_bandwidth(DGX1, [0, 1, 2, 6], rates=rates) == 20  # no measurement, no correction


def test_the_error_is_that_of_the_median_set() -> None:
    assert MEASURED.median_error(corrected=False) == pytest.approx(0.15)  # of 0.05, 0.1, 0.2, 0.5
    assert MEASURED.median_error(corrected=True) == pytest.approx(
        0.05 / 1.8
    )  # of 0, 0, 0.05 / 0.9, 0.1 / 0.9
    assert math.isnan(Measurements(DGX1, RATES, ()).median_error(corrected=True))
    assert Measurements(DGX1, RATES, ()).efficiencies() == ()


def test_measurements_survive_json_with_their_topology() -> None:
    again = Measurements.from_json(MEASURED.to_json())
    assert again.topology == DGX1
    assert again.sets == MEASURED.sets
    assert again.rates.to_json() == RATES.to_json()
    assert json.loads(MEASURED.to_json())["efficiencies"][0]["factor"] == 0.9
    corrected = measuring.rates_from_json(MEASURED.to_json())
    assert corrected.to_json() == MEASURED.corrected_rates().to_json()
    assert measuring.rates_from_json(corrected.to_json()).to_json() == corrected.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": [0, 8]}, r"sets\[0\]: gpus\[1\] = 8"),
        ({"path_type": "NVX"}, r"sets\[0\]: path_type = 'NVX'"),
        ({"planned_gb_per_s": 0}, r"sets\[0\]: planned_gb_per_s = 0"),
        ({"measured_gb_per_s": "1"}, r"sets\[0\]: measured_gb_per_s = '1'"),
        ({"failure": 3}, r"sets\[0\]: failure = 3"),
        ({"more": 3}, r"sets\[0\] is not an object with the keys"),
    ],
)
def test_wrong_sets_in_json_are_named(change: dict[str, Any], message: str) -> None:
    record = json.loads(MEASURED.to_json())
    record["sets"][0] |= change
    with pytest.raises(ValueError, match=message):
        measuring.rates_from_json(json.dumps(record))


def test_chosen_sets_have_all_sizes_and_path_types() -> None:
    sets = measuring.sets_to_measure(DGX1, most=2)
    kinds: dict[tuple[int, str | None], list[float]] = {}
    for gpus in sets:
        plan = collective.rings(DGX1, gpus)
        kinds.setdefault((len(gpus), plan.path_type), []).append(plan.gb_per_s)
    assert {size for size, _ in kinds} == {2, 4, 8}
    assert kinds[4, "NVL"] == [80.0, 40.0]  # the fastest and the slowest
    assert {path_type for size, path_type in kinds if size == 4} == {"NVL", "NVB", "SYS"}
    assert max(map(len, kinds.values())) == 2
    assert measuring.sets_to_measure(DGX1, sizes=[3], most=1) == [(0, 1, 2), (0, 3, 4), (0, 1, 6)]
    with pytest.raises(ValueError, match=r"sizes\[1\] = 9"):
        measuring.sets_to_measure(DGX1, sizes=[2, 9])
    with pytest.raises(ValueError, match="most = 0"):
        measuring.sets_to_measure(DGX1, most=0)


def test_sets_without_rings_are_not_chosen_and_refused() -> None:
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    assert measuring.sets_to_measure(apart) == [(0, 1)]
    with pytest.raises(ValueError, match=r"gpus = \(0, 2\): there are no rings"):
        list(measuring.measured_sets(apart, [(0, 1), (0, 2)]))


def test_sets_are_measured_in_the_order_of_their_rings(tmp_path: Path) -> None:
    order = collective.rings(DGX1, [0, 4, 6, 7]).rings[0].gpus
    listed = ",".join(map(str, order))
    program = fake_nccl_tests.install(tmp_path, {listed: 17.5, "0,3": "fail"})
    factors = replace(RATES, achieved={"NVL": 0.5, "NVB": 0.5})
    benchmark = AllReducePerf(str(program))
    sets = [(7, 6, 4, 0), (3, 0)]
    found = list(measuring.measured_sets(DGX1, sets, benchmark=benchmark, rates=factors))
    planned = collective.ring_bandwidth(DGX1, [0, 4, 6, 7])
    assert found[0] == MeasuredSet(order, str(collective.rings(DGX1, order).path_type), planned, 17.5)
    assert (found[1].measured_gb_per_s, found[1].planned_gb_per_s) == (None, 40.0)
    assert found[1].failure.startswith("exit code 3")
    assert [visible for visible, _, _ in fake_nccl_tests.calls(tmp_path)] == [listed, "0,3"]
