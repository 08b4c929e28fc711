"""What the tables of the command line show: units, three digits, no `nan`, why jobs were rejected, who is best."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from command_line import Call
from topoplace.drawing import tables
from topoplace_lab.policies import USUAL
from topoplace_lab.report import columns as measures
from topoplace_lab.report import comparison, written_tables
from topoplace_lab.sweeps import Scenario

PROFILE = (
    "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\n"
    "solo,net,1,2,intra-socket,,,,100\nsolo,net,1,2,inter-socket,,,,130.4567\nsolo,net,1,1,intra-socket,,,,50\n"
    "collocation,net,1,1,,net,1,1,60.4567\n"
)
LOG = "".join(
    f"01/07/2013 09:3{i}:00;E;{i}.batch;queue=G ctime=1357549200 start=1357549800 end=135755{i}000 "
    "Resource_List.select=1:ncpus=4:ngpus=2:mem=8gb Resource_List.walltime=01:00:00\n"
    for i in (1, 2, 3)
)
COMMANDS = (
    "show",
    "show dgx1-v100",
    "show gb200-nvl72",
    "show dgx1-v100 --collective 4",
    "place dgx1-v100 --busy 0,5",
    "place dgx1-v100 --policy fcfs",
    "place dgx1-v100 --gpus 7",
    "simulate dgx1-v100 --num-jobs 9 --policy fcfs",
    "simulate dgx1-v100 --jobs none.txt --policy fcfs",
    "simulate dgx1-v100 --jobs trace.csv --profile profile.csv --policy fcfs",
    "simulate dgx1-v100 --num-jobs 9",
    "simulate dgx1-v100 --jobs none.txt",
    "simulate minsky --jobs log",
    "simulate minsky --jobs trace.csv --profile profile.csv",
    "profile show profile.csv",
    "capacity jobs.csv times.csv",
    "capacity jobs.csv times.csv --planner fifo",
    "show minsky --since summit",
)
UNITS = ("GB/s", "s", "h", "ms", "%", "$", "jobs/h")
WITHOUT_UNIT = {
    *("slowdown", "slowdown incl. wait", "utility", "throughput speed-up", "p75 speed-up"),
    *("distance", "oversubscription", "two sockets / one", "SLO violations", "rejected"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "profile.csv": PROFILE,
        "trace.csv": "job_id,submit_s,num_gpus,duration_s,model,batch\na,0,1,50,net,1\nb,3,2,100,net,1\n",
        "log": LOG,
        "none.txt": "99,ring,0,30,1,a\n",
        "jobs.csv": "job_id,due,weight\nvgg,3,0.5\n",
        "times.csv": "job_id,vm_type,gpus,hours\nvgg,NC6,1,4\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], list[Sequence[object]], str]]:
    """The tables that the command shows: columns, rows and title."""
    found: list[tuple[Sequence[str], list[Sequence[object]], str]] = []
    show = tables.show

    def record(columns: Sequence[str], rows: Any, title: str = "", colours: Any = ()) -> None:
        rows = list(rows)
        found.append((columns, rows, title))
        show(columns, rows, title, colours)

    monkeypatch.setattr(tables, "show", record)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_have_units_and_three_digits(command: str, call: Call, shown: list[Any]) -> None:
    done = call(*command.split())
    assert shown
    assert not re.search(r"\bnan\b|\binf\b", done.out)
    digits = [number.replace(".", "").lstrip("0") for number in re.findall(r"(?<![\w.])\d+\.\d+", done.out)]
    assert all(len(number) <= 3 for number in digits), digits
    for columns, rows, title in shown:
        for i, column in enumerate(columns):
            floats = [row for row in rows if isinstance(row[i], float)]
            if column == "value":  # each row has its unit behind the value or in its name
                named = [f"{row[0]} {row[2] if len(row) > 2 else ''}".rstrip() for row in floats]
                assert all(name.split()[-1] in UNITS or name in WITHOUT_UNIT for name in named), named
            elif floats:
                inside = set(re.findall(r"[\w/%$]+", title)) & set(UNITS)
                assert column.split()[-1] in UNITS or column in WITHOUT_UNIT or inside, column


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "-"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.98765, "0.988"),
        (12.345, "12.3"),
        (99.94, "99.9"),
        (99.96, "100"),
        (655.757, "656"),
        (29446.6, "29447"),
        (-3.14159, "-3.14"),
        (0.000012345, "1.23e-05"),
        (1e20, "1e+20"),
        (math.inf, "inf"),
    ],
)
def test_three_digits(value: float, text: str) -> None:
    assert tables.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (math.nan, "-"),
        (math.inf, "for ever"),
        (-90.0, "−1 min 30 s"),
        (0, "0 s"),
        (2e-6, "2 µs"),
        (0.0375, "37.5 ms"),
        (0.9999, "1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (61, "1 min 1 s"),
        (3599.6, "1 h"),
        (27_420, "7 h 37 min"),
        (86_399, "1 d"),
        (1e6, "11 d 14 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert tables.duration(seconds) == text


@pytest.mark.parametrize("command", ["simulate l40s-8 --num-jobs 9", "place dgx1-v100", "show"])
def test_no_word_of_a_head_is_broken_on_60_columns(
    command: str, call: Call, shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    printed = set(re.split(r"(?:\s|─|\x1b\[[\d;]*m)+", call(*command.split()).out))
    assert shown
    for columns, *_ in shown:
        assert {word for column in columns for word in column.split()} <= printed


def test_numbers_are_aligned_to_the_right(call: Call) -> None:
    lines = call("show", "dgx1-v100").out.splitlines()
    header = next(line for line in lines if line.startswith("link"))
    rows = [line for line in lines[lines.index(header) + 1 :] if not line.startswith("collectives:")]
    for column in ("pairs", "GB/s", "distance"):
        end = header.index(column) + len(column)
        assert all(row[end - 1].isdigit() and row[end : end + 1].strip() == "" for row in rows), column


def test_a_dash_is_explained_once_below_the_table(call: Call) -> None:
    out = call("simulate", "dgx1-v100", "--jobs", "none.txt", "--policies", "baseline,fcfs").out
    assert (
        "- in mean turnaround, makespan, utilization, mean wait, slowdown, throughput speed-up: no job ran\n"
        in out
    )
    assert out.count("no job ran\n") == 1
    assert "- in utility, SLO violations: the policy has no score of utility" in (
        call("simulate", "summit", "--num-jobs", "2", "--policy", "least-time").out
    )
    for key in tp.simulate(
        tp.machines.get("summit"), tp.simulate.Workload([], [], []), tp.policies.get("baseline")
    ).summary():
        assert measures.MEASURES[key].missing


def row(name: str, turnaround: float, rejected: float = 0.0) -> comparison.ComparisonRow:
    figures = {"rejected": rejected, "mean_turnaround": turnaround}
    return comparison.row_of(Scenario("machine", "jobs", None), name, [figures])


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([row("a", 10)], set()),
        ([row("a", 10), row("b", 9)], {1}),
        ([row("a", 10, 3), row("b", 20)], {1}),
        ([row("a", 10), row("b", 10 + 1e-9), row("c", 11)], {0, 1}),
        ([row("a", math.nan), row("b", 10)], {1}),
        ([row("a", math.nan, 1), row("b", math.nan, 1)], set()),
    ],
)
def test_the_best_policy(rows: list[comparison.ComparisonRow], best: set[int]) -> None:
    assert comparison.best_of(rows) == best


def seeds(name: str, *turnarounds: float) -> comparison.ComparisonRow:
    figures = [
        {"makespan": 10 * one, "mean_wait": one, "rejected": 0.0, "mean_turnaround": one}
        for one in turnarounds
    ]
    return comparison.row_of(Scenario("machine", "jobs", None), name, figures)


def test_the_conclusion_compares_seed_by_seed() -> None:
    """Of two seeds 10 and 20 % sooner: 15 % on average; the ratio .85 times or over exp(.05 × 12.706 / .85)."""
    rows = [seeds("first", 100, 200), seeds("other", 90, 160), seeds("third", 120, 200)]
    assert comparison.conclusion(rows, have_one_queue=True) == (
        "other: jobs finish 15.0 % sooner than under first "
        "(95 % interval -79.5 to 59.7 %, 2 seeds: chance may explain it)"
    )
    assert comparison.conclusion([rows[0], seeds("same", 50, 100)]).endswith(
        "(95 % interval 50.0 to 50.0 %, 2 seeds)"
    )
    assert comparison.conclusion(rows[::-1]).startswith("other: jobs finish 22.5 % sooner than under third")
    assert comparison.conclusion([seeds("a", 10), seeds("b", 9), seeds("c", 9)]) == (
        "b and 1 more: jobs finish 10.0 % sooner than under a"
    )
    default = seeds("least-time", 9)
    assert comparison.conclusion([seeds("a", 10), seeds("b", 9), default]).startswith("least-time and 1 more")
    assert comparison.conclusion([seeds("a", 9), seeds("b", 10)]) == "no policy finishes jobs sooner than a"
    assert comparison.conclusion([seeds("a", 9)]) == ""


def test_the_conclusion_tells_placement_from_queue() -> None:
    """Half the time, 0.8 of it by placement, so 0.625 by the queue."""
    own, one = ([seeds("first", 100.0), seeds("other", time)] for time in (50.0, 80.0))
    assert comparison.conclusion(own, with_one_queue=one) == (
        "other: jobs finish 50.0 % sooner than under first: 20.0 % by placement, and then 37.5 % by its own queue"
    )


def test_policies_with_the_same_placements_have_the_same_row_but_with_their_own_queues(call: Call) -> None:
    """On a machine whose GPUs are all alike, only queues differ."""
    command = ("simulate", "dgx-h100", "--num-jobs", 40, "--policies", "baseline,best-fit", "--json")
    one, other = json.loads(call(*command).out)
    own = {"policy", "mean_utility", "slo_violations"}  # baseline knows no utility
    assert {key: one[key] for key in one.keys() - own} == {key: other[key] for key in one.keys() - own}
    one, other = json.loads(call(*command, "--queue", "own").out)
    assert one["makespan"] != other["makespan"]
    shown = call(*command[:-1], "--queue", "own").out
    assert re.match(r"best-fit: jobs finish [0-9.]+ % sooner than under baseline: 0.0 % by placement", shown)
    ordered = json.loads(call(*command, "--order", "submitted", "--backfill", "easy").out)
    assert ordered == json.loads(call(*command).out)
    refused = call(*command, "--queue", "own", "--order", "submitted")
    assert "--queue own: --order and --backfill replace the policies' own queues" in refused.err


PLANS = """
from topoplace.policies import SearchPolicy, VectorBestFit


class Plans(VectorBestFit):
    name = "plans"

    def place(self, job, cluster):
        raise ValueError("I only plan")
"""


@pytest.mark.parametrize("order", ["baseline,plans_only:Plans", "plans_only:Plans,baseline"])
def test_a_policy_that_cannot_run_in_one_queue_is_compared_with_its_own(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    (here / "plans_only.py").write_text(PLANS, "utf-8")
    monkeypatch.syspath_prepend(str(here))
    done = call("simulate", "dgx-h100", "--num-jobs", 40, "--policies", order, "--queue", "own")
    assert (done.code, done.err) == (0, "")
    first = done.out.splitlines()[0]
    best = (
        "plans: jobs finish" if order.startswith("baseline") else "no policy finishes jobs sooner than plans"
    )
    assert first.startswith(best)
    assert "by placement" not in first


def test_seeds_give_means_and_intervals(call: Call) -> None:
    command = ("simulate", "dgx1-v100", "--num-jobs", 20, "--policies", "baseline,least-time")
    several = json.loads(call(*command, "--seeds", 3, "--seed", 5, "--json").out)
    alone = [json.loads(call(*command, "--seed", seed, "--json").out) for seed in (5, 6, 7)]
    for i, row in enumerate(several):
        values = [rows[i]["makespan"] for rows in alone]
        assert row["makespan"] == pytest.approx(sum(values) / 3)
        assert row["seeds"] == 3
        low, high = row["intervals"]["makespan"]
        assert low <= row["makespan"] <= high
    shown = call(*command, "--seeds", 3).out
    assert "3 seeds" in shown.splitlines()[0]
    assert "means over 3 seeds, with their 95 % intervals\n" in shown
    assert "fewer seeds" not in shown
    refused = call("simulate", "summit", "--jobs", "trace.csv", "--policies", "baseline", "--seeds", 2)
    assert "--seeds 2: seeds change nothing, as the jobs are all in the file" in refused.err


def test_rejections_are_those_of_all_seeds(call: Call) -> None:
    """MAPA's mix has jobs of 5 GPUs, which four GPUs never hold: others with each seed."""
    command = ("simulate", "minsky", "--num-jobs", 6, "--policies", "baseline,fcfs")
    alone = [json.loads(call(*command, "--seed", seed, "--json").out)[0]["rejections"] for seed in range(4)]
    counts = [sum(rejections.values()) for rejections in alone]
    assert len(set(counts)) > 1
    done = call(*command, "--seeds", 4, "--json")
    row = json.loads(done.out)[0]
    assert row["rejections"] == {next(iter(filter(None, alone))).popitem()[0]: sum(counts)}
    assert row["rejected"] == sum(counts) / 4
    assert row["intervals"]["rejected"][1] <= 6
    shown = call(*command, "--seeds", 4).out
    assert f"rejected {sum(counts)} with 4 seeds together under all policies: never fits" in shown


def test_figures_that_some_seeds_lack_are_named(call: Call) -> None:
    """Of three jobs, with some seeds none is bandwidth-sensitive."""
    command = ("simulate", "summit", "--num-jobs", 3, "--policies", "baseline,fcfs", "--seeds")
    alone = json.loads(call(*command, 9, "--json").out)[0]
    assert alone["sensitive_run_time_p75"] is not None
    assert "fewer seeds have data on sensitive run time p75\n" in call(*command, 9).out


def test_more_jobs_than_there_are_cannot_be_rejected() -> None:
    outcomes = [{"rejected": count, "mean_turnaround": 1.0} for count in (0.0, 0.0, 3.0)]
    scenario = Scenario("machine", "jobs", None)
    rows = [comparison.row_of(scenario, "a", outcomes, **how) for how in ({}, {"num_jobs": 3})]
    assert rows[0].samples["rejected"].high > 3 >= rows[1].samples["rejected"].high


def test_tables_are_written_as_csv_and_latex(tmp_path: Path) -> None:
    heads, rows = ("name", "50 % & more"), [("a_b", 1234.5), ("x, \\{y}", 0.125), ("±", math.nan)]
    paths = written_tables.write(heads, rows, tmp_path, "made")
    assert [path.name for path in paths] == ["made.csv", "made.tex"]
    with paths[0].open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [list(heads), ["a_b", "1234"], ["x, \\{y}", "0.125"], ["±", "-"]]
    assert paths[1].read_text("utf-8").splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"name & 50 \% \& more \\",
        r"\midrule",
        r"a\_b & 1234 \\",
        r"x, \textbackslash{}\{y\} & 0.125 \\",
        r"$\pm$ & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_compare_marks_the_best_and_says_how(call: Call) -> None:
    command = ("simulate", "torus2d-16", "--num-jobs", "60", "--policies", "all")
    done = call(*command)
    same = {first: rest.split(", ") for first, rest in re.findall(r"^same as (\S+): (.*)$", done.out, re.M)}
    shown = [line.split()[0] for line in done.out.splitlines() if re.match(r"\S+ \* ", line)]
    marked = [name for first in shown for name in (first, *same.get(first, ()))]
    rows = json.loads(call(*command, "--json").out)
    least = min(row["mean_turnaround"] for row in rows)
    best = {row["policy"] for row in rows if row["mean_turnaround"] <= least * (1 + 1e-6)}
    assert set(marked) == best
    assert len(marked) == len(best)
    assert "* best: lowest mean turnaround\n" in done.out
    assert "speed-up: over baseline\n" in done.out
    assert "*" not in call("simulate", "summit", "--num-jobs", "9", "--policies", "fcfs").out


def test_policies_with_the_same_figures_share_a_row(call: Call) -> None:
    """On an idle machine of equal links nothing differs, so that one row says it."""
    done = call("simulate", "dgx-h100", "--num-jobs", "9")
    first, *others = USUAL
    assert f"same as {first}: {', '.join(others)}\n" in done.out
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith(USUAL)] == [first]


def test_rejected_jobs_are_counted_with_the_reason(here: Path, call: Call) -> None:
    (here / "jobs.txt").write_text("2,ring,0,30,0,a\n99,ring,0,40,1,b\n98,ring,0,40,1,b\n")
    done = call("simulate", "summit", "--jobs", "jobs.txt", "--policies", "baseline,fcfs")
    for size in (98, 99):
        reason = f"never fits: needs {size} GPUs, the topology has 6"
        assert f"rejected 1 under all policies: {reason}\n" in done.out
        for policies in ("fcfs", "baseline,fcfs"):
            again = call("simulate", "summit", "--jobs", "jobs.txt", "--policies", policies, "--json")
            found = json.loads(again.out)
            for one in found if isinstance(found, list) else [found]:
                assert one["rejected"] == 2
                assert one["rejections"][reason] == 1
        one = call("simulate", "summit", "--jobs", "jobs.txt", "--policy", "fcfs").out
        assert f"rejected 1: {reason}\n" in one
    assert "* best: fewest jobs rejected, then lowest mean turnaround" in done.out


@pytest.mark.parametrize("command", ["simulate --policy fcfs", "simulate --policies baseline,fcfs"])
def test_a_long_run_adds_nothing_to_its_table(
    command: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace._progress._DELAY_S", 0.0)
    done = call(*command.split(), "summit", "--num-jobs", "200")
    assert "200 jobs on summit" in done.out.splitlines()[0 if command.split()[-1] == "fcfs" else 1]
    assert done.err == ""


def test_names_in_messages_cannot_control_the_terminal(here: Path, call: Call) -> None:
    (here / "trace.csv").write_text(
        "job_id,submit_s,num_gpus,duration_s,gpu_type\na,0,1,10,\x1b[31mred\nb,0,1,10,\n"
    )
    out = call("simulate", "summit", "--jobs", "trace.csv").out
    assert "needs 1 \\x1b[31mred GPU" in out
    assert "\x1b" not in out + call("show", "\x1b[31mred").err


def test_rejections_of_some_policies_name_them(here: Path, call: Call) -> None:
    (here / "trace.csv").write_text(
        "job_id,submit_s,num_gpus,duration_s,min_utility\na,0,1,10,0.1\nb,0,1,10,0\n"
    )
    out = call("simulate", "summit", "--jobs", "trace.csv", "--policies", "baseline,topo-aware").out
    assert "rejected 1 under baseline: min_utility = 0.1 cannot be honoured" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_narrow_terminal_gets_narrow_tables(
    call: Call, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    wide = call(*command.split()).out
    monkeypatch.setenv("COLUMNS", "40")
    narrow = call(*command.split()).out
    words = [{word for word in text.split() if not word[0].isdigit()} for text in (narrow, wide)]  # not times
    assert words[0] == words[1]


def test_parts_of_a_table_repeat_what_names_the_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    tables.show(("name", "first", "second", "third"), [("a", 1, 2, 3), ("b", 4, 5, 6)])
    assert capsys.readouterr().out == (
        "name  first  second\na         1       2\nb         4       5\n\nname  third\na         3\nb         6\n"
    )
    tables.show(("worse", "what", "before", "after"), [("-", "a", 1, 2), ("-", "b", 3, 4)])
    assert capsys.readouterr().out == (
        "worse  what  before\n    -  a          1\n    -  b          3\n\n"
        "worse  what  after\n    -  a         2\n    -  b         4\n"
    )
