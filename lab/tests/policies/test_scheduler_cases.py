"""Cases of the test suites of Kueue, KAI, Volcano and Slurm that ask for groups or levels."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from scheduler_cases import FILES, Case, read

LEAST = {"kueue": 70, "kai": 14, "volcano": 20, "slurm": 6}
"""The least number of cases that must be understood in each file."""


@pytest.fixture(scope="module")
def cases_of_others(shared: Path) -> Path:
    folder = shared / "data" / "rivals"
    if not folder.is_dir():
        pytest.skip(f"needs the cases of other schedulers, and {folder} does not exist")
    return folder


@pytest.mark.parametrize("policy", ["topo-aware-p", "best-fit", "baseline", "mapa-greedy", "fgd"])
@pytest.mark.parametrize("file", FILES)
def test_what_fits_is_placed_within_what_it_requires(
    cases_of_others: Path, file: str, policy: str, record_property: pytest.RecordProperty
) -> None:
    report = read(cases_of_others, file)
    faults = [f"{case.name}: {fault}" for case in report.cases if (fault := fault_of(case, policy))]
    record_property("cases", f"{len(report.cases)} translated, others: {dict(report.others)}")
    assert not faults
    assert len(report.cases) >= LEAST[file]


def fault_of(case: Case, policy: str) -> str | None:
    """Return what is wrong with the answer of a policy; None if nothing is."""
    cluster = case.cluster()
    placement = cluster and tp.policies.get(policy).place(case.job(), cluster)
    if placement is None:
        return "fits, but is not placed" if case.feasible else None
    if not case.feasible:
        return f"does not fit, but is placed on {placement.gpus}"
    groups = case.job().groups
    for group in groups:
        if group.within and not case.is_together(group, group.within, placement):
            return f"{group} is on {placement.gpus}"
    fulfilled = sum(
        bool(group.prefer) and case.is_together(group, str(group.prefer), placement) for group in groups
    )
    return None if fulfilled >= case.wishes else f"{fulfilled} of {case.wishes} preferred groups are together"
