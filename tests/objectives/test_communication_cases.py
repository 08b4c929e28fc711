"""Communication time against simulations of flows: SimGrid's max-min fair sharing, of the reference data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import step_cases
import topoplace as tp
from topoplace.objectives.communication import communication_time

REFUSED: Final = {
    "a2a_rail": {"PXN": 12},
    "degraded": {"PXN": 8},
    "ecmp": {"static hashing": 16},
    "job_degraded": {"PXN": 1},
    "job_free": {"PXN": 4, "groups that do not wait for their phase": 12},
    "job_rail": {"PXN": 4},
    "mixed": {"PXN": 4},
    "pp_rail": {"PXN": 9},
    "ring_channels": {"PXN": 4},
    "ring_rail": {"PXN": 10},
    "two_jobs": {"PXN": 5},
    "two_jobs_hot": {"PXN": 2},
    "uneven": {"PXN": 4, "unequal parts in an all-to-all": 7},
}
"""Cases that the model does not say, by family and reason."""
SHARED_UNEVENLY: Final = {"mixed_032": 0.962}
"""Ratio to the simulation where fair sharing takes longer than the busiest port needs for its GB.

A large flow shares one port with others while its next port is idle, and then has that one to make up for it."""
COMPARED: Final = 269
COMPARED_BESIDE_OTHERS: Final = 88
SHARED_OTHERWISE: Final = {
    ("two_jobs_006", 0): 0.751,
    ("two_jobs_008", 1): 2.5,
    ("two_jobs_022", 0): 0.874,
    ("two_jobs_034", 0): 0.9,
    ("two_jobs_038", 1): 0.62,
    ("two_jobs_hot_003", 1): 0.967,
    ("two_jobs_hot_006", 1): 0.957,
    ("two_jobs_hot_010", 1): 0.784,
    ("two_jobs_hot_012", 0): 0.727,
    ("two_jobs_hot_016", 1): 0.952,
    ("two_jobs_hot_021", 0): 0.714,
}
"""Ratio to the simulation by case and number of the job, where jobs share ports otherwise.

Mostly, flows are held up at other ports too, so that the rest of a large flow comes after all others have ended."""


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[step_cases.Case]:
    path = shared / "data" / "steps" / "cases.json"
    if not path.is_file():
        pytest.skip(f"needs the simulated steps, and {path} does not exist")
    listed: list[step_cases.Case] = json.loads(path.read_text(encoding="utf-8"))
    return listed


def test_what_cannot_be_said_is_known(cases: list[step_cases.Case]) -> None:
    found: dict[str, Counter[str]] = {}
    for case in cases:
        if reason := step_cases.refusal(case):
            found.setdefault(case["family"], Counter())[reason] += 1
    assert found == REFUSED


def test_times_are_those_of_the_simulations(cases: list[step_cases.Case]) -> None:
    """Within 1 %: in the order of the tasks, without the rings that a library plans, as the cases count them."""
    compared, wrong = 0, {}
    for case in cases:
        if step_cases.refusal(case) or step_cases.is_of_several(case):
            continue
        compared += 1
        placed = case["jobs"][0]["placement"]
        found = communication_time(
            step_cases.job_of(case), placed, step_cases.topology_of(case), planned=False
        )
        ratio = found.seconds / case["results"]["simgrid_maxmin"]["seconds"]
        if abs(ratio - SHARED_UNEVENLY.get(case["id"], 1.0)) > 0.01:
            wrong[case["id"]] = ratio
    assert wrong == {}
    assert compared == COMPARED


def test_times_of_jobs_beside_each_other_are_mostly_those_of_the_simulations(
    cases: list[step_cases.Case],
) -> None:
    ratios = {}
    for case in cases:
        if step_cases.refusal(case) or not step_cases.is_of_several(case):
            continue
        topology, jobs = step_cases.topology_of(case), step_cases.jobs_of(case)
        cluster = tp.Cluster(topology)
        for number, (job, placed) in enumerate(jobs):
            cluster.allocate(str(number), placed, job)
        simulated = case["results"]["simgrid_maxmin"]["job_seconds"]
        for number, (job, placed) in enumerate(jobs):
            found = communication_time(job, placed, topology, cluster=cluster, planned=False)
            ratios[case["id"], number] = found.seconds / simulated[number]
    assert len(ratios) == COMPARED_BESIDE_OTHERS
    others = {key: ratio for key, ratio in ratios.items() if abs(ratio - 1) > 0.01}
    assert others == pytest.approx(SHARED_OTHERWISE, abs=0.001)
