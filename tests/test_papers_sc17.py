from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.objectives.authors_utility import (
    authors_utility,
    communication_cost,
    fragmentation_cost,
    job_utility,
    system_utility,
)
from topoplace.papers.sc17 import authors
from topoplace.papers.sc17.measured import NAMES, authors_profile
from topoplace.papers.sc17.python2 import IntDict, copied
from topoplace.papers.sc17.scenarios import TABLE_1, five_jobs
from topoplace.simulate import Workload

POLICIES = list(authors.POLICIES)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Crowded, with equal arrivals, and jobs that rather wait."""
    size = draw(st.integers(1, 25))
    rows = st.tuples(
        st.sampled_from(NAMES), st.integers(1, 3), st.sampled_from([0.0, 0.5]), st.integers(0, 120)
    )
    jobs = draw(st.lists(rows, min_size=size, max_size=size))
    return Workload(
        [tp.JobGraph.clique(k).with_(profile=name, min_utility=least) for name, k, least, _ in jobs],
        [float(arrival) for *_, arrival in jobs],
        [0.0] * size,
    )


@given(workloads(), st.sampled_from(POLICIES), st.integers(1, 12), st.booleans())
def test_the_authors_simulator_keeps_its_books(
    workload: Workload, policy: str, machines: int, python2: bool
) -> None:
    profile = authors_profile()
    run = authors.simulate(workload, profile, policy, machines, python2=python2)
    for job in run.jobs:
        assert job.start is not None
        assert job.end is not None
        assert job.machine is not None
        assert 0 <= job.machine < machines
        assert len(set(job.gpus)) == job.num_gpus
        assert job.arrival <= job.submit + 1e-9 <= job.start + 2e-9
        assert job.time >= profile.solo[job.name, job.num_gpus, "intra-socket"]
        assert job.time <= job.end - job.start < job.time + authors.STEP_S + 1e-9
        if policy == "topo-aware-p":
            assert (job.utility or 0.0) >= job.min_utility
    if policy in ("fcfs", "bf"):  # the others give one GPU to two jobs now and then
        for a, b in itertools.combinations(run.jobs, 2):
            shared = a.machine == b.machine and set(a.gpus) & set(b.gpus)
            assert not shared or (a.end or 0.0) <= (b.start or 0.0) or (b.end or 0.0) <= (a.start or 0.0)
    assert authors.simulate(workload, profile, policy, machines, python2=python2) == run


@pytest.mark.parametrize(
    ("policy", "makespan"), list(zip(POLICIES, (440.0, 440.0, 433.4, 396.0), strict=True))
)
@pytest.mark.parametrize("python2", [True, False])
def test_the_five_jobs_on_one_machine(policy: str, makespan: float, python2: bool) -> None:
    run = authors.simulate(five_jobs(), authors_profile(), policy, python2=python2)
    assert run.makespan == pytest.approx(makespan, abs=1e-6)
    slowdowns = [run.slowdown(job, authors_profile()) for job in run.jobs]
    worse = [round(slowdown, 2) > 1.05 for slowdown in slowdowns]
    assert (
        worse[3:] == [policy != "topo-aware-p"] * 3
    )  # the two-GPU jobs span sockets unless they are put off


def test_table_1_starts_as_the_paper_tells() -> None:
    run = authors.simulate(five_jobs(TABLE_1), authors_profile(), "topo-aware-p")
    job_0, job_3 = run.jobs[0], run.jobs[3]
    assert job_0.end is not None
    assert job_3.start is not None
    assert job_3.start > job_0.end
    assert len({gpu // 2 for gpu in job_3.gpus}) == 1


@pytest.mark.parametrize(
    ("job", "policy", "message"),
    [
        (tp.JobGraph.clique(4).with_(profile=NAMES[0]), "fcfs", r"jobs\[0\]: profile 'bvlc_alexnet/1' on 4"),
        (tp.JobGraph.clique(2), "fcfs", r"jobs\[0\]: profile None on 2"),
        (tp.JobGraph.clique(1), "best", "policy = 'best', not one of fcfs, bf, topo-aware, topo-aware-p"),
    ],
)
def test_what_the_published_code_cannot_run_is_refused(job: tp.JobGraph, policy: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        authors.simulate(Workload([job], [0.0], [1.0]), authors_profile(), policy)


def test_a_job_that_is_never_placed_has_no_start() -> None:
    job = tp.JobGraph.clique(3).with_(profile=NAMES[0], min_utility=1.0)
    run = authors.simulate(Workload([job], [0.0], [1.0]), authors_profile(), "topo-aware-p")
    assert run.jobs[0].start is None
    assert run.makespan == 0.0
    assert run.slowdown(run.jobs[0], authors_profile()) == 0.0


def test_dictionaries_of_python_2() -> None:
    # What CPython 2.7.18 prints for the same operations.
    assert copied([1, 9]) == [1, 9]
    assert copied([9, 1]) == [9, 1]
    assert copied([8, 9, 16, 1]) == [8, 9, 16, 1]
    assert copied([33, 5, 12, 70, 3, 41]) == [33, 3, 5, 70, 41, 12]
    assert copied(range(10, 20)) == list(range(10, 20))
    table = IntDict[str]()
    for key in (3, 11, 19):
        table[key] = "x"
    del table[3]
    table[27] = "y"
    table[11] = "z"
    assert (list(table), len(table), table[11], 3 in table, 27 in table) == (
        [11, 19, 27],
        3,
        "z",
        False,
        True,
    )


def test_utility_of_the_published_code() -> None:
    least = 0.01
    assert job_utility(least, least) == pytest.approx(1.0)
    assert system_utility(least, least, least) == pytest.approx(1.0)
    assert authors_utility(0.0, 0.0) == job_utility(least, least)
    assert authors_utility(0.5, 0.9, 0.25, on_others=0.8) == system_utility(0.5, 0.9, 0.25, 0.8)
    assert authors_utility(0.5, least) < authors_utility(0.1, least)
    assert authors_utility(least, 0.99) < authors_utility(least, 0.7) < authors_utility(least, 0.0)
    assert communication_cost(1, 0.0) == communication_cost(2, 1.0) == communication_cost(3, 41.0) == least
    assert communication_cost(2, 20.0) == 19 / 40
    assert communication_cost(4, 82.0, least=62.0, worst=80.0) == 0.25
    assert [fragmentation_cost(shares) for shares in ((1.0, 1.0), (0.0, 0.0), (0.5, 0.0))] == [
        least,
        least,
        0.25,
    ]
    with pytest.raises(ValueError, match="num_gpus = 4"):
        communication_cost(4, 82.0)
    with pytest.raises(ValueError, match="interference"):
        authors_utility(0.5, float("nan"))
