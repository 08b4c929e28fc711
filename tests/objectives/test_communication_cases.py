"""Communication time against simulations of flows on networks, of the reference data, and by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import step_cases
import topoplace as tp
from step_cases import Agreement, Row

TABLES: Final = Path(__file__).with_name("simulated.txt")
REFUSED: Final = {"ecmp": {"static hashing": 16}}
"""Cases that the model cannot say, by family and reason."""
COMPARED: Final = 450
WITHOUT_BARRIER: Final = "job_free"
"""The family whose groups of tasks do not wait for the others of their phase; the model lets them wait."""


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[step_cases.Case]:
    path = shared / "data" / "steps" / "cases.json"
    if not path.is_file():
        pytest.skip(f"needs the simulated steps, and {path} does not exist")
    listed: list[step_cases.Case] = json.loads(path.read_text(encoding="utf-8"))
    return listed


@pytest.fixture(scope="module")
def rows(cases: list[step_cases.Case]) -> list[Row]:
    return list(step_cases.rows(cases))


def test_what_cannot_be_said_is_known(cases: list[step_cases.Case], rows: list[Row]) -> None:
    found: dict[str, Counter[str]] = {}
    for case in cases:
        if reason := step_cases.refusal(case):
            found.setdefault(case["family"], Counter())[reason] += 1
    assert found == REFUSED
    assert len(rows) == COMPARED


def test_fair_shares_are_those_of_the_simulation(rows: list[Row]) -> None:
    """To the digits that the cases have; without barriers, a job may be faster than the model says."""
    wrong = {
        (row.case, row.job): ratio
        for row in rows
        if abs((ratio := row.fair / row.simulated["simgrid_maxmin"]) - 1) > 1e-5
        and row.family != WITHOUT_BARRIER
    }
    assert wrong == {}
    free = _agreement([row for row in rows if row.family == WITHOUT_BARRIER], "fair")
    assert free.near >= 0.9
    assert free.lowest > -1e-5


@pytest.mark.parametrize("kind", ["estimate", "fair"])
def test_times_reach_the_bars(rows: list[Row], kind: str) -> None:
    """The estimate misses more of the jobs that share ports with another one."""
    pairs = {row.case for row in rows if row.job > 0}
    alone = _agreement([row for row in rows if row.case not in pairs], kind)
    beside = _agreement([row for row in rows if row.case in pairs], kind)
    assert _agreement(rows, kind).correlation >= 0.999
    assert alone.near >= 0.99
    assert beside.fair >= (1.0 if kind == "fair" else 0.9)


def test_the_kept_tables_are_these(rows: list[Row]) -> None:
    text = TABLES.read_text(encoding="utf-8")
    for table in (step_cases.by_family(rows), step_cases.by_simulator(rows)):
        assert "\n".join(table) in text


def _agreement(rows: list[Row], kind: str) -> Agreement:
    simulated = [row.simulated["simgrid_maxmin"] for row in rows]
    return Agreement.of([getattr(row, kind) for row in rows], simulated)


# ---- by hand --------------------------------------------------------------------------------------------------

LEAVES: Final = {"kind": "leafspine", "gpus": 8, "nvlink": 300.0, "adapter": 40.0, "spines": 0}
RAILS: Final = {"kind": "rail", "gpus": 8, "nvlink": 300.0, "adapter": 40.0, "oversub": 1}


def leaves(machines: int, size: int, oversub: int) -> dict[str, object]:
    return {**LEAVES, "machines": machines, "machines_per_leaf": size, "oversub": oversub}


def entry(op: str, gigabytes: float, *groups: list[int]) -> dict[str, object]:
    """Return a job of one phase; the groups have the numbers of GPUs."""
    placed = [gpu for group in groups for gpu in group]
    tasks = [[placed.index(gpu) for gpu in group] for group in groups]
    return {"placement": placed, "phases": [{"op": op, "gb": gigabytes, "groups": tasks}]}


@pytest.mark.parametrize(
    ("fabric", "degraded", "job", "seconds"),
    [
        # 3 tasks of one leaf: each sends 2 x 2 GB through its adapter
        (leaves(4, 4, 1), [], entry("alltoall", 6.0, [0, 8, 16]), 4 / 40),
        # two of three tasks send 8 of 12 GB to the third
        (
            leaves(4, 4, 1),
            [],
            {
                "placement": [0, 8, 16],
                "phases": [{"op": "alltoall", "gb": 12.0, "groups": [[0, 1, 2]], "dst_weights": [[1, 1, 4]]}],
            },
            16 / 40,
        ),
        # a ring of 2 carries 3 GB each way, and one adapter has 10 GB/s
        (leaves(4, 4, 1), [[8, "adapter", 0.25]], entry("ring_allreduce", 3.0, [0, 8]), 3 / 10),
        # a ring of 4 on a machine carries 6 GB from each, and the NVLinks of GPU 2 have half their speed
        (leaves(4, 4, 1), [[2, "nvlink", 0.5]], entry("ring_allreduce", 4.0, [0, 1, 2, 3]), 6 / 150),
        # 16 pairs between two leaves with an uplink of 16 x 40 / 8 GB/s
        (leaves(4, 2, 8), [], entry("sendrecv", 0.5, *([i, i + 16] for i in range(16))), 8 / 80),
        # as before: a slow adapter makes no uplink slower, as the switch has the same cables
        (
            leaves(4, 2, 8),
            [[5, "adapter", 0.5]],
            entry("sendrecv", 0.5, *([i, i + 16] for i in range(16))),
            8 / 80,
        ),
        # with PXN, GPU 0 sends to 10 through the adapter of GPU 2, which sends to 18
        (
            {**RAILS, "machines": 4, "machines_per_pod": 4, "cross_rail": "pxn"},
            [],
            entry("sendrecv", 1.5, [0, 10], [2, 18]),
            3 / 40,
        ),
        # without PXN, it has an adapter of its own
        (
            {**RAILS, "machines": 4, "machines_per_pod": 4, "cross_rail": "spine"},
            [],
            entry("sendrecv", 1.5, [0, 10], [2, 18]),
            1.5 / 40,
        ),
        # PXN passes the NVLinks of the GPU that relays, which have a tenth of their speed
        (
            {**RAILS, "machines": 4, "machines_per_pod": 4, "cross_rail": "pxn", "adapter": 300.0},
            [[7, "nvlink", 0.1]],
            entry("ring_allreduce", 2.0, [0, 15]),
            2 / 30,
        ),
    ],
)
def test_times_by_hand(
    fabric: dict[str, object], degraded: list[object], job: dict[str, object], seconds: float
) -> None:
    case = {"fabric": fabric, "degraded": degraded, "jobs": [job]}
    ((graph, placed),) = step_cases.jobs_of(case)
    for fair in (False, True):
        topology = step_cases.topology_of(case)
        found = tp.communication_time(graph, placed, topology, planned=False, max_min=fair)
        assert found.seconds == pytest.approx(seconds)


def test_jobs_that_share_an_uplink_by_hand() -> None:
    """The uplink has 20 GB/s. The flow of 1 GB has half of it, as the one of 3 GB has, until both have sent 1 GB."""
    case = {
        "fabric": leaves(2, 1, 16),
        "jobs": [entry("sendrecv", 1.0, [0, 8]), entry("sendrecv", 3.0, [1, 9])],
    }
    assert _beside_each_other(case, max_min=False) == pytest.approx([2 / 20, 4 / 20])
    assert _beside_each_other(case, max_min=True) == pytest.approx([2 / 20, 4 / 20])


def test_a_flow_that_is_held_up_elsewhere_leaves_more_for_others() -> None:
    """GPU 9 has 4 GB/s, so the other flow has the 16 left of the uplink; the estimate counts 3 GB of each."""
    case = {
        "fabric": leaves(2, 1, 16),
        "degraded": [[9, "adapter", 0.1]],
        "jobs": [entry("sendrecv", 3.0, [0, 8]), entry("sendrecv", 3.0, [1, 9])],
    }
    assert _beside_each_other(case, max_min=True) == pytest.approx([3 / 16, 3 / 4])
    assert _beside_each_other(case, max_min=False) == pytest.approx([6 / 20, 3 / 4])


def test_a_phase_begins_when_the_one_before_has_ended() -> None:
    """First 2 GB and 3 GB share the uplink, at 10 GB/s each. Then 1 GB has it all, as the next phase is inside."""
    job = entry("sendrecv", 2.0, [0, 8])
    inside = {"op": "sendrecv", "gb": 30.0, "groups": [[0, 2]]}
    placed, phases = [0, 8, 1], [*job["phases"], inside]  # type: ignore[misc]
    case = {
        "fabric": leaves(2, 1, 16),
        "jobs": [{"placement": placed, "phases": phases}, entry("sendrecv", 3.0, [2, 10])],
    }
    assert _beside_each_other(case, max_min=True) == pytest.approx([2 / 10 + 30 / 300, 2 / 10 + 1 / 20])


def _beside_each_other(case: step_cases.Case, *, max_min: bool) -> list[float]:
    topology, jobs = step_cases.topology_of(case), step_cases.jobs_of(case)
    cluster = tp.Cluster(topology)
    for number, (job, placed) in enumerate(jobs):
        cluster.allocate(str(number), placed, job)
    return [
        tp.communication_time(job, placed, topology, cluster=cluster, planned=False, max_min=max_min).seconds
        for job, placed in jobs
    ]
