"""The model of capacity planning: catalogue, jobs, one decision and what it costs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    Catalogue,
    Node,
    Problem,
    VMType,
    jobs_from_csv,
    plan_of,
    time_table,
)

TWO = Catalogue([VMType("small", "K80", 1, 0.5), VMType("large", "M60", 2, 1.5)])
HOURS = time_table({("small", 1): 4.0, ("large", 1): 2.0, ("large", 2): 1.0}, TWO)


def test_the_built_in_catalogue_is_table_ii() -> None:
    assert len(tp.capacity.TABLE_II) == 9
    assert sum(vm_type.num_gpus for vm_type in TABLE_II) == 32
    assert TABLE_II[TABLE_II.index_of("Custom2")].cost_per_hour == 1.13
    assert Catalogue.from_csv(TABLE_II.to_csv()) == TABLE_II


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NC6,K80,0,0.5", "line 2: gpus = '0'"),
        ("NC6,K80,1,nan", "line 2: cost_per_hour = 'nan'"),
        ("NC6,K80,1,-1", "line 2: cost_per_hour = '-1'"),
        (",K80,1,1", "line 2: name = ''"),
        ("NC6,K80,1", "line 2: 3 columns"),
    ],
)
def test_bad_lines_of_a_catalogue_are_named(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Catalogue.from_csv(f"name,gpu_model,gpus,cost_per_hour\n{line}\n")


def test_numbers_of_other_kinds_are_written_as_numbers() -> None:
    catalogue = Catalogue(
        [VMType("a", "x", np.int64(2), np.float64(1.5)), VMType("b", "x", 1, Fraction(1, 2))]
    )
    assert Catalogue.from_csv(catalogue.to_csv()) == catalogue


def test_a_catalogue_refuses_equal_names_and_emptiness() -> None:
    with pytest.raises(ValueError, match=r"types\[1\]: 'a' is also the name of types\[0\]"):
        Catalogue([VMType("a", "x", 1, 1.0), VMType("a", "y", 2, 1.0)])
    with pytest.raises(ValueError, match="types is empty"):
        Catalogue([])
    with pytest.raises(ValueError, match="VM type 'huge' is not one of small, large"):
        TWO.index_of("huge")


JOBS = "job_id,due,weight\na,3,0.5\nb,-1,1\n"
TIMES = "job_id,vm_type,gpus,hours\na,small,1,4\na,large,2,1\nb,large,1,2\n"


def test_jobs_are_read_with_their_times() -> None:
    a, b = jobs_from_csv(JOBS, TIMES, TWO)
    assert (a.job_id, a.due, a.weight, a.submit) == ("a", 3.0, 0.5, 0.0)
    assert a.hours.tolist() == [[4.0, math.inf], [math.inf, 1.0]]
    assert b.hours.tolist() == [[math.inf, math.inf], [2.0, math.inf]]


@pytest.mark.parametrize(
    ("jobs", "times", "message"),
    [
        (JOBS, TIMES + "a,small,1,5\n", "times, line 5: repeats the job, type and number"),
        (JOBS, TIMES + "a,huge,1,5\n", "times, line 5: VM type 'huge' is not one of"),
        (JOBS, TIMES + "a,small,2,5\n", "line 5: gpus = '2', not a number 1..1"),
        (JOBS, TIMES + "a,large,1,0\n", "times, line 5: hours = 0.0 is not above 0"),
        (JOBS, TIMES + "a,large,1,-3\n", "line 5: hours = '-3'"),
        (JOBS, TIMES + "a,large,1,nan\n", "line 5: hours = 'nan'"),
        (JOBS, TIMES + "c,large,1,1\n", "times, line 5: job 'c' is not in jobs"),
        (JOBS, TIMES + ",large,1,1\n", "times, line 5: job_id is empty"),
        (JOBS + "c,1,1\n", TIMES, "jobs, line 4: job 'c' has no times"),
        (JOBS + "a,1,1\n", TIMES, "jobs, line 4: job 'a' is also in line 2"),
        (JOBS + "c,1\n", TIMES, "jobs, line 4: 2 columns, 3 needed"),
        (JOBS, TIMES + "c,1\n", "times, line 5: 2 columns, 4 needed"),
        (JOBS + "c,nan,1\n", TIMES + "c,large,1,1\n", "line 4: due = 'nan'"),
        (JOBS + "c,1,-1\n", TIMES + "c,large,1,1\n", "line 4: weight = '-1'"),
    ],
)
def test_bad_tables_are_refused_with_their_row(jobs: str, times: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jobs_from_csv(jobs, times, TWO)


def test_times_are_keyed_by_type_and_gpus() -> None:
    keys: list[Any] = ["small", ("small", 1, 2), 5]
    for key in keys:
        with pytest.raises(ValueError, match=r"times: key .* is not (\(name of a type, GPUs\)|a sequence)"):
            time_table({key: 4.0}, TWO)
    nothing: Any = None
    with pytest.raises(ValueError, match="catalogue = None is not a Catalogue"):
        time_table({("small", 1): 4.0}, nothing)
    with pytest.raises(ValueError, match="catalogue = None is not a Catalogue"):
        jobs_from_csv(JOBS, TIMES, nothing)
    with pytest.raises(ValueError, match="catalogue = None is not a Catalogue"):
        Problem.of([], nothing, 1)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, -math.inf])
def test_a_time_is_above_zero(bad: float) -> None:
    hours = HOURS.copy()
    hours[1, 0] = bad
    with pytest.raises(ValueError, match=r"job 'a': hours\[1, 0\]"):
        CapacityJob("a", 1.0, 1.0, hours)
    with pytest.raises(ValueError, match=r"hours\[0, 1, 0\]"):
        Problem(TWO, 1, [1.0], [1.0], [hours])


def test_a_job_that_can_run_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="job 'a': hours: it can run on no type"):
        CapacityJob("a", 1.0, 1.0, np.full((2, 2), math.inf))
    with pytest.raises(ValueError, match=r"hours\[1\]: it can run on no type"):
        Problem(TWO, 1, [1.0, 1.0], [1.0, 1.0], [HOURS, np.full((2, 2), math.inf)])


def test_problems_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"hours\[0, 0, 1\] = 3: small has fewer than 2 GPUs"):
        Problem(TWO, 1, [1.0], [1.0], [[[4.0, 3.0], [2.0, 1.0]]])
    with pytest.raises(ValueError, match=r"weight has shape \(1,\): must be \(2,\)"):
        Problem(TWO, 1, [1.0, 2.0], [1.0], [HOURS, HOURS])
    with pytest.raises(ValueError, match=r"weight\[1\] = nan"):
        Problem(TWO, 1, [1.0, 2.0], [1.0, math.nan], [HOURS, HOURS])
    with pytest.raises(ValueError, match="num_nodes = 0"):
        Problem(TWO, 0, [1.0], [1.0], [HOURS])
    with pytest.raises(
        ValueError, match=r"jobs\[0\]: hours has shape \(2, 2\), the catalogue needs \(9, 8\)"
    ):
        Problem.of([CapacityJob("a", 1.0, 1.0, HOURS)], TABLE_II, 1)


def test_the_objective_by_hand() -> None:
    """(P1a): b is late by an hour already, which counts in no plan; H = 1, rho = 100, mu = 1."""
    problem = Problem(TWO, 2, [3.0, -1.0, 1.5], [0.5, 1.0, 0.8], [HOURS, HOURS, HOURS])
    assert problem.waiting.tolist() == [100 * 0.5 * 2.0, 100 * 1.0 * 5.0, pytest.approx(100 * 0.8 * 3.5)]
    plan = plan_of(problem, [Node(1, ((2, 1), (1, 1))), Node(0, ((0, 1),))])
    assert plan.nodes[0].jobs == ((1, 1), (2, 1))
    assert plan.postponed == ()
    assert plan.cost.vm == pytest.approx(2.0 * 1.5 + 4.0 * 0.5)
    assert plan.cost.tardiness == pytest.approx(1.0 * 2.0 + 0.8 * 0.5 + 0.5 * 1.0)
    assert (plan.cost.postponement, plan.cost.idle) == (0.0, 0.0)
    less = plan_of(problem, [Node(1, ((1, 1),))], bound=100.0)
    assert less.postponed == (0, 2)
    assert less.cost.idle == 1.0
    assert less.cost.postponement == pytest.approx(100 * 0.5 * 2.0 + 100 * 0.8 * 3.5)
    assert less.gap == pytest.approx((less.cost.total - 100.0) / less.cost.total)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node(0, ((0, 1),)), Node(0, ((1, 1),))], "nodes has 2 entries: must be at most num_nodes = 1"),
        ([Node(0, ())], r"nodes\[0\] has no job"),
        ([cast("Any", (0, ((0, 1),)))], r"nodes\[0\] = .* is not a Node"),
        ([Node(2, ((0, 1),))], r"nodes\[0\].vm_type = 2"),
        ([Node(0, ((0, 2),))], r"nodes\[0\]: GPUs of job 0 = 2"),
        ([Node(1, ((0, 1), (0, 1)))], r"nodes\[0\]: job 0 is already running"),
        ([Node(1, ((0, 2), (1, 1)))], r"nodes\[0\] uses 3 GPUs: must be at most 2"),
        ([Node(1, ((2, 1),))], r"nodes\[0\]: job = 2"),
    ],
)
def test_plans_that_cannot_be_are_refused(nodes: list[Node], message: str) -> None:
    problem = Problem(TWO, 1, [3.0, 1.0], [0.5, 1.0], [HOURS, HOURS])
    with pytest.raises(ValueError, match=message):
        plan_of(problem, nodes)


def test_plans_are_made_of_nodes() -> None:
    problem = Problem(TWO, 1, [3.0], [0.5], [HOURS])
    with pytest.raises(ValueError, match=r"nodes\[0\] = 'x' is not a Node"):
        plan_of(problem, ["x"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="nodes = None is not a sequence"):
        plan_of(problem, None)  # type: ignore[arg-type]


def test_what_is_left_is_what_counts() -> None:
    jobs = [CapacityJob("a", 10.0, 1.0, HOURS), CapacityJob("b", 20.0, 1.0, HOURS)]
    problem = Problem.of(jobs, TWO, 3, now=12.0, left=[0.5, 1.0])
    assert problem.due.tolist() == [-2.0, 8.0]
    assert problem.hours[0].tolist() == [[2.0, math.inf], [1.0, 0.5]]
    assert problem.used_nodes == 2
    with pytest.raises(ValueError, match=r"left\[1\] = 2 is not in 0..1"):
        Problem.of(jobs, TWO, 3, left=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"left\[0\] = 0: the job is finished"):
        Problem.of(jobs, TWO, 3, left=[0.0, 1.0])


def test_no_job_at_all() -> None:
    problem = Problem.of([], TABLE_II, 5)
    assert plan_of(problem, []).cost.total == 0.0
