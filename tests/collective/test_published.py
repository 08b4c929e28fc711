"""What is planned beside what others published: medians by kind, orders of rings, and the page that shows them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import topoplace as tp
from topoplace import collective

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

from published import page  # noqa: E402

FACTS = page.facts()


@pytest.fixture(scope="module")
def rows() -> list[page.Compared]:
    return page.compared(FACTS)


@pytest.mark.parametrize("kind", list(page.BARS))
def test_the_median_of_each_kind_is_near_what_is_published(rows: list[page.Compared], kind: str) -> None:
    least, most = page.BARS[kind]
    assert least <= page.median(rows, kind) <= most


def test_three_quarters_over_machines_are_within_a_fifth(rows: list[page.Compared]) -> None:
    assert page.near(rows, page.OVER_MACHINES) >= 0.75


def test_every_measurement_over_pcie_is_within_the_bar(rows: list[page.Compared]) -> None:
    least, most = page.BARS["over PCIe"]
    ratios = [one.ratio for one in rows if one.row["kind"] == "over PCIe"]
    assert least <= min(ratios) <= max(ratios) <= most


def test_planned_orders_of_rings_are_those_that_nccl_printed() -> None:
    agree = page.orders_agree(FACTS)
    assert agree
    assert all(same for _, same in agree)


def test_each_measurement_has_a_source_and_a_known_machine() -> None:
    kinds = {*page.BARS, page.NOT_MODELLED}
    for row in FACTS["measurements"]:
        assert row["kind"] in kinds
        assert row["source"]
        assert row["gb_per_s"] > 0
        assert row["kind"] == page.NOT_MODELLED or row["machine"] in FACTS["machines"]


def test_measurements_of_the_reference_data_are_compared(shared: Path) -> None:
    reference = json.loads((shared / "data/channels/published.json").read_text("utf-8"))
    ours = {(row["source"], float(row["gb_per_s"])) for row in FACTS["measurements"]}
    for row in reference:
        if row["source"].startswith("https://") and row["adapters_known"]:
            assert (row["source"], float(row["published_bus_gb_per_s"])) in ours, row["id"]


def test_the_page_has_a_line_for_each_measurement() -> None:
    tables = page.page().partition("## ")[2].splitlines()
    lines = [line for line in tables if line.startswith("| ") and not line.startswith(("| machine", "| ---"))]
    assert len(lines) == len(FACTS["measurements"]) + len(FACTS["orders"])


def test_the_time_of_a_collective_on_one_machine_is_that_of_its_rings() -> None:
    """The figure of the page over machines comes from `communication_time`: on one machine it is known."""
    machine = tp.machines.get("dgx-a100")
    one = tp.Collective("all_reduce", tuple(range(8)), gigabytes=1.0)
    job = tp.JobGraph.from_collectives(8, [one])
    seconds = tp.communication_time(job, range(8), machine).seconds
    assert 2 * 7 / 8 / seconds == pytest.approx(collective.ring_bandwidth(machine, range(8)))
