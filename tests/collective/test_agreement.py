"""Collective bandwidths against NCCL's own search, exact optima of other programs, and published measurements."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from collective_agreement import SCORES, agreement, machines, planned, records, table
from topoplace import collective

MODELS = {"induced": "chosen", "routed": "all"}


def test_rings_are_those_that_nccl_plans(shared: Path) -> None:
    topologies = machines(shared)
    for row in records(shared, "nccl_search.json")["records"]:
        plan = collective.rings(topologies[row["machine"]], row["gpus"])
        ours = (sum(ring.channels for ring in plan.rings), plan.rings[0].gb_per_s, plan.path_type)
        theirs = (row["ring"]["nChannels"], row["ring"]["bw"], row["ring"]["type"])
        where = f"{row['machine']} {row['gpus']}"
        assert plan.complete, where
        assert plan.gb_per_s == pytest.approx(row["nccl_ring_bw"]), where
        assert ours == theirs, where


def test_ranks_agree_with_nccl(shared: Path) -> None:
    found = agreement(SCORES["`ring_bandwidth`"], planned(shared), machines(shared))
    assert found.within_tie >= 0.95
    assert found.correlation >= 0.93
    assert found.good_choices >= 0.98


def test_the_table_of_the_document_is_current(shared: Path, repository: Path) -> None:
    """`python tests/support/collective_agreement.py` prints its rows."""
    written = (repository / "docs/collectives.md").read_text("utf-8").splitlines()
    assert [row for row in table(shared) if row not in written] == []


def test_optima_are_exact(shared: Path) -> None:
    topologies = machines(shared)
    for row in records(shared, "optimum.json")["records"]:
        for model, relay in MODELS.items():
            ours = (
                collective.optimal_bandwidth(topologies[row["machine"]], row["gpus"], relay=relay),
                collective.broadcast_bandwidth(topologies[row["machine"]], row["gpus"], relay=relay),
            )
            theirs = (Fraction(row[model]["algbw"]), Fraction(row["min_cut"][model]))
            assert ours == theirs, f"{row['machine']} {row['gpus']} {model}"


def test_measurements_are_near_the_plans(shared: Path) -> None:
    """The ratios of measured to planned bandwidth lie within those of NCCL's own plans, 0.78 to 1.19."""
    topologies = machines(shared)
    compared = 0
    for row in records(shared, "measured.json")["records"]:
        model = row.get("model", {})
        if model.get("machine") in topologies and "NVLS" not in row["collective"]:
            ratio = row["busbw"] / collective.ring_bandwidth(topologies[model["machine"]], model["gpus"])
            assert 0.78 <= ratio <= 1.19, row["machine"]
            compared += 1
    assert compared >= 5
