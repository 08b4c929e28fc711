"""Results come back from files as they were; damaged files are refused, and a file is written whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace import errors
from topoplace.moving import MakingRoom
from topoplace.placement import HostShare, Placement
from topoplace_lab.simulate import (
    JobRecord,
    MoveTimes,
    RemoteCopies,
    Result,
    SubmittedJob,
    Transfers,
    Workload,
)
from topoplace_lab.simulate.storage import tables

CLUSTER = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2, racks=1)
ENDINGS = ["csv", "parquet"]


@pytest.fixture(params=ENDINGS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return tmp_path / f"result.{request.param}"


def trained() -> Result:
    return tp.simulate(tp.machines.get("dgx1-v100"), Workload.mapa(20), tp.policies.get("mapa-preserve"))


def logged() -> Result:
    """A result with hosts, remote GPUs, transfers, requested times and a job that is too large."""
    job = tp.JobGraph.independent(6).with_(processes=1, cpus=3, memory_gb=9.5)
    borrowing = tp.JobGraph.independent(4).with_(processes=1, cpus=2, memory_gb=1 / 3)
    large = tp.JobGraph.independent(64).with_(processes=1)
    workload = Workload(
        [job, job, borrowing, large],
        [0.0, 0.1, 1 / 3, 2.0],
        [10.0, 20.0, 30.0, 1.0],
        ["a", 'quoted ", comma', "new\nline", "é"],
        transfers=[Transfers(1.5, 10, 2.5, 20), None, None, None],
        requested_time=[60.0, math.nan, math.nan, math.nan],
    )
    hosts = tp.HostResources(8, 64)
    result = tp.simulate(
        CLUSTER, workload, tp.policies.get("r-queue"), performance=RemoteCopies(), hosts=hosts
    )
    assert [bool(one.placement and one.placement.remote) for one in result.records] == [
        False,
        False,
        True,
        False,
    ]
    return result


def moved() -> Result:
    """A result in which jobs were moved."""
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 3)
    small, whole = tp.JobGraph.ring(1), tp.JobGraph.clique(4).with_(single_machine=True)
    workload = Workload([small] * 9 + [whole], [0.0] * 9 + [5.0], [3.0, 200.0, 200.0] * 3 + [50.0])
    result = tp.simulate(topology, workload, MakingRoom(), move_times=MoveTimes(1 / 3))
    assert result.jobs["moves"].any()
    return result


def odd() -> Result:
    """A result whose placements have what no policy gives: scores of few jobs, NaN, drives, no job."""
    topology = tp.Topology.from_links(3, [])
    job, other = tp.JobGraph.ring(2), tp.JobGraph.ring(2).with_(profile="net/4", gpu_fraction=0.25)
    placed = [
        Placement((1, 0), topology=topology, scores={"a b": math.nan, "n": 3}, optimal=True, job=other),
        Placement((2,), topology=topology, hosts=(HostShare(0, 0.5, 1),), remote=(2,), drives=(0, 0)),
        None,
    ]
    jobs = other, tp.JobGraph.ring(1), job
    records = [
        JobRecord(SubmittedJob(i, str(i), jobs[i], 0.1 * i, 5.0), placement, 1.0, 2.0, 1.0, i)
        for i, placement in enumerate(placed)
    ]
    records[2] = JobRecord(SubmittedJob(2, "2", job, 0.2, 5.0), rejected="no room, ever")
    return Result(topology, "mine", tuple(records))


def plain(record: JobRecord) -> str:
    """Return all of a record as text, in which NaN equals itself; the order of scores does not matter."""
    placement = record.placement
    scores = placement and {name: float(value) for name, value in sorted(placement.scores.items())}
    rest = placement and (placement.gpus, placement.optimal, placement.job)
    hosts = placement and (placement.hosts, placement.remote, placement.drives)
    times = (record.start, record.end, record.run_time)
    return repr((record.submitted, scores, rest, hosts, times, record.postponed, record.rejected))


@pytest.mark.parametrize("make", [trained, logged, moved, odd], ids=["trained", "logged", "moved", "odd"])
def test_a_result_comes_back_as_it_was(make: Callable[[], Result], path: Path) -> None:
    result = make()
    result.save(path)
    again = Result.load(path)
    assert list(map(plain, again.records)) == list(map(plain, result.records))
    assert (again.policy, again.topology) == (result.policy, result.topology)
    assert again.rejections() == result.rejections()
    for name, value in result.summary().items():
        assert again.summary()[name] == pytest.approx(value, nan_ok=True, abs=0, rel=0)


def test_results_are_equal_if_the_same_jobs_never_ran(path: Path) -> None:
    """Their times are NaN, which does not equal itself."""
    result = logged()
    assert np.isnan(result.jobs["start"]).any()
    result.save(path)
    again = Result.load(path)
    assert again == result
    assert pickle.loads(pickle.dumps(result)) == result
    for name, value in (("end", 7.0), ("start", 1.5), ("postponed", 9), ("rejected", "why not")):
        other = replace(again.records[0], **{name: value})
        assert replace(again, records=(other, *again.records[1:])) != result


def test_seed_and_options_come_back(path: Path) -> None:
    options = {"load": "0.9", "backfill": "easy"}
    result = replace(trained(), seed=7, options=options)
    result.save(path)
    again = Result.load(path)
    assert (again.seed, again.options) == (7, options)
    trained().save(path)
    again = Result.load(path)
    assert (again.seed, again.options) == (0, None)  # a library's caller chose what no name stands for


def test_a_file_of_the_other_kind_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for name, other, message in (
        ("a.csv", "b.parquet", r"a CSV file; its name must end in \.csv"),
        ("c.parquet", "d.csv", r"a Parquet file; its name must end in \.parquet"),
    ):
        odd().save(tmp_path / name)
        (tmp_path / name).rename(tmp_path / other)
        with pytest.raises(ValueError, match=message):
            Result.load(tmp_path / other)


def test_an_empty_result_comes_back(path: Path) -> None:
    result = Result(tp.machines.get("minsky"), "fcfs", ())
    result.save(path)
    assert Result.load(path) == result


def test_the_columns_are_those_of_jobs(path: Path) -> None:
    result = trained()
    result.save(path)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            assert file.readline().startswith('# {"format":"topoplace.result","version":1')
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
    else:
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    for name in ("submit", "start", "end", "wait", "run_time", "slowdown", "num_gpus"):
        assert [float(row[name]) for row in rows] == result.jobs[name].tolist()
    scores = [float(row["score.effective_bandwidth"]) for row in rows]
    assert np.array_equal(scores, result.jobs["scores"]["effective_bandwidth"], equal_nan=True)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    for name in ("result.json", "result", "result.csv.gz"):
        with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
            trained().save(tmp_path / name)
        with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
            Result.load(tmp_path / name)
    assert not list(tmp_path.iterdir())


DAMAGES = [
    (0, "# {", "{", "the first line does not begin with #"),
    (0, "# {", "# ", "not a result of topoplace"),
    (0, '"version":1', '"version":2', "format and version"),
    (0, '"policy":"mine"', '"policy":5', "policy = 5"),
    (0, '"seed":null', '"seed":"x"', "seed = 'x'"),
    (0, '"options":null', '"options":[]', r"options = \[\]"),
    (0, '"options":null', '"options":{"load":1}', r"options\['load'\] = 1"),
    (0, '"graphs":[', '"graphs":5,"g":[', "graphs = 5"),
    (0, '"topology":{', '"topology":5,"g":{', "an object|not"),
    (1, "submit,", "sub,", "no column 'submit'"),
    (2, "0,0.0,", "0,soon,", "row 1: cannot be read"),
    (2, ",1 0,", ",1 9,", r"row 1: gpus\[1\] = 9"),
    (2, ",1 0,", ",1 1,", "row 1: gpus = .* twice"),
    (2, "0,0.0,", ",0.0,", "row 1: job = None"),
    (2, "0,0.0,", "0,", "row 1: cannot be read"),
    (3, "[[0, 0.5, 1]]", "[[0, 0.5", "row 2: "),
    (3, "[[0, 0.5, 1]]", "[[7, 0.5, 1]]", "row 2: hosts"),
    (4, ",0.2,", ",inf,", "row 3: submit = inf"),
]


@pytest.mark.parametrize(("line", "old", "new", "message"), DAMAGES, ids=map(str, range(len(DAMAGES))))
def test_a_damaged_file_is_refused(tmp_path: Path, line: int, old: str, new: str, message: str) -> None:
    path = tmp_path / "result.csv"
    odd().save(path)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    path.write_text("".join(lines), "utf-8")
    with pytest.raises(ValueError, match=message):
        Result.load(path)


@pytest.mark.parametrize("graph", [-1, 99, 0.5])
def test_a_stay_of_an_unknown_job_graph_is_refused(tmp_path: Path, graph: float) -> None:
    path = tmp_path / "result.csv"
    moved().save(path)
    text = path.read_text("utf-8")
    assert '""graph"": 0' in text
    path.write_text(text.replace('""graph"": 0', f'""graph"": {graph}', 1), "utf-8")
    with pytest.raises(ValueError, match=f"row [0-9]+: number of a job graph = {graph}"):
        Result.load(path)


def test_parquet_of_others_is_refused(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    parquet.write_table(arrow.table({"a": [1]}), path)
    with pytest.raises(ValueError, match="no such metadata"):
        Result.load(path)
    path.write_text("no parquet", "utf-8")
    with pytest.raises(ValueError, match="not a Parquet file"):
        Result.load(path)


def test_an_interrupt_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd().save(path)
    before = path.read_bytes()

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained().save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_cell_that_csv_cannot_hold_is_refused(tmp_path: Path) -> None:
    topology = tp.Topology.from_links(1, [])
    record = JobRecord(SubmittedJob(0, "x" * 200_000, tp.JobGraph.ring(1), 0.0, 1.0))
    path = tmp_path / "result.csv"
    with pytest.raises(ValueError, match="too long for a cell of CSV"):
        Result(topology, "mine", (record,)).save(path)
    assert not path.exists()


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(errors.importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"needs pyarrow: pip install 'topoplace-lab\[parquet\]'"):
        odd().save(tmp_path / "result.parquet")


def test_job_graphs_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    tp.simulate(
        CLUSTER, Workload([tp.JobGraph.clique(8)] * 50, [0.0] * 50, [1.0] * 50), tp.policies.get("fcfs")
    ).save(path)
    about = json.loads(path.read_text("utf-8").splitlines()[0][2:])
    assert len(about["graphs"]) == 1
