"""`topoplace place` takes a training job by its degrees, keeps groups of tasks together, and says where they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from topoplace.cli import ranks

DEGREES = "tensor=4,pipeline=2,data=8,expert=4"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixteen machines of eight GPUs, in racks of four and leaves of eight."""
    names = tuple(f"n{i:02}" for i in range(16))
    fabric = tp.Fabric.regular(names, {"rack": 4, "leaf": 8})
    cluster = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric, name="hall")
    (tmp_path / "hall.json").write_text(cluster.to_json(), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def placed(call: Call, *options: str) -> tuple[int, ...]:
    done = call("place", "hall.json", *options, "--top", 1, "--json")
    assert (done.code, done.err) == (0, "")
    return tuple(json.loads(done.out)["placement"]["gpus"])


def test_options_give_the_job_that_the_library_builds(call: Call) -> None:
    traffic = tp.Traffic.of("mixtral-8x7b", micro_batches=4, sequence_parallel=True, zero_stage=1)
    order = "tensor-pipeline-context-data"
    job = tp.JobGraph.parallel(tensor=4, pipeline=2, data=8, expert=4, traffic=traffic, order=order)
    job = job.grouped("tensor", within="machine").grouped(16, prefer="rack").with_(balanced="rack")
    options = (
        f"--parallel {DEGREES} --order {order} --model mixtral-8x7b --micro-batches 4 --sequence-parallel "
        "--zero-stage 1 --group tensor@machine --prefer-group 16@rack --balanced rack"
    )
    cluster = tp.Cluster(tp.read(Path("hall.json").read_text("utf-8")))
    expected = tp.policies.get("mapa-preserve").place(job, cluster)
    assert expected is not None
    assert placed(call, *options.split()) == expected.gpus


@pytest.mark.parametrize("policy", ["baseline", "mapa-preserve", "topo-aware"])
def test_required_groups_are_together(call: Call, policy: str) -> None:
    busy = "0-4,32-36"  # leaves three GPUs of two machines
    options = ("--gpus", "24", "--group", "12@rack", "--group", "4+8+4+8@machine", "--busy", busy)
    gpus = placed(call, *options, "--policy", policy)
    for first, last in ((0, 4), (4, 12), (12, 16), (16, 24)):
        assert len({gpu // 8 for gpu in gpus[first:last]}) == 1
    for first, last in ((0, 12), (12, 24)):
        assert len({gpu // 32 for gpu in gpus[first:last]}) == 1


def test_shares_of_racks_are_equal(call: Call) -> None:
    racks = [gpu // 32 for gpu in placed(call, "--gpus", "48", "--balanced", "rack")]
    assert sorted(racks.count(rack) for rack in set(racks)) == [24, 24]


def test_a_refusal_counts_the_groups_that_fit(call: Call) -> None:
    """Three racks of four machines have three without a busy GPU, room for one group of two; the fourth has two."""
    options = "--gpus 112 --group 16@rack --group 8@machine --busy 0,32,64"
    done = call("place", "hall.json", *options.split())
    assert done.code == 1
    assert done.out.startswith("not placed: cannot start now: 5 of 7 groups of 16 fit within a rack; ")
    assert done.out.endswith(" lacks 1 machine with 8 free GPUs\n")


def hall() -> tp.Topology:
    return tp.read(Path("hall.json").read_text("utf-8"))


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_neighbours_with_equal_gpus_share_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    gpus = (*range(8, 32), *range(40, 48), 6, 0, 1, 2, 3, 4, 5, 7, 64, 66, 65)
    ranks.show_machines(tp.Placement(gpus, topology=hall()))
    assert rows_of(capsys)[1:] == [
        ["n[01-03]", "8", "0-23", "0-7"],
        ["n05", "8", "24-31", "0-7"],
        ["n00", "8", "32-39", "6,0-5,7"],
        ["n08", "3", "40-42", "0,2,1"],
    ]


def test_ranks_that_are_no_block_have_rows_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    gpus = (0, 1, 8, 9, 2, 3, 10, 11)
    ranks.show_machines(tp.Placement(gpus, topology=hall()))
    assert rows_of(capsys)[1:] == [["n00", "4", "0,1,4,5", "0-3"], ["n01", "4", "2,3,6,7", "0-3"]]


def test_domains_of_groups_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    job = tp.JobGraph.parallel(tensor=4, pipeline=2, data=8, expert=4)
    ranks.show_spread(tp.Placement(tuple(range(16, 80)), topology=hall(), job=job))
    assert rows_of(capsys)[1:] == [
        ["dimension", "groups", "machine", "rack", "leaf"],
        ["tensor", "16", "of", "4", "1", "1", "1"],
        ["expert", "16", "of", "4", "2", "1", "1"],
        ["data", "8", "of", "8", "4", "2", "2", "(1.5)"],
        ["pipeline", "32", "of", "2", "2", "2", "2", "(1.5)"],
    ]
    ranks.show_spread(tp.Placement((0, 8), topology=hall(), job=tp.JobGraph.ring(2)))
    assert rows_of(capsys) == []


def test_preferred_groups_that_are_together_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    job = tp.JobGraph.ring(8).grouped(4, prefer="machine").grouped([2, 6], prefer="rack")
    job = job.grouped(2, within="machine")
    ranks.show_preferred(tp.Placement((0, 1, 2, 3, 8, 9, 32, 33), topology=hall(), job=job))
    assert capsys.readouterr().out.splitlines() == [
        "preferred: 1 of 2 groups of 4 are within a machine",
        "preferred: 1 of 1 groups of 2 are within a rack",
        "preferred: 0 of 1 groups of 6 are within a rack",
    ]


def test_a_large_job_is_shown_by_machines(call: Call) -> None:
    done = call(
        "place", "hall.json", "--parallel", DEGREES, "--group", "tensor@machine", "--policy", "baseline"
    )
    lines = done.out.splitlines()[2:]
    assert lines[1].split()[0] == "GPUs"
    assert lines[2].startswith("64 on n[00-07]  ")
    assert lines[-1] == "n[00-07]: CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"
    small = call("place", "hall.json", "--gpus", 16, "--policy", "baseline")
    assert small.out.splitlines()[4].startswith("n00 0–7; n01 0–7  ")
    assert "ranks on each" in done.out
    assert "ranks on each" not in small.out


def test_one_command_places_and_starts_a_training_job(call: Call, tmp_path: Path) -> None:
    options = f"--parallel {DEGREES} --model mixtral-8x7b --group tensor@machine --launch torchrun -o start"
    done = call("place", "hall.json", *options.split())
    assert done.code == 0
    assert "start it there: " in done.out
    assert (tmp_path / "start/torchrun.sh").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model llama3-70b", "--model needs --parallel"),
        ("--order tensor", "--order needs --parallel"),
        ("--parallel tensor=2 --micro-batches 2", "--micro-batches needs --model"),
        ("--parallel tensor=2 --gpus 2", "--gpus says the same as --parallel; give one of the two"),
        ("--parallel tensor=2 --pattern ring", "--pattern says the same as --parallel; give one of the two"),
        (
            "--parallel data=4,expert=3",
            "--parallel 'data=4,expert=3': expert = 3 does not divide data = 4",
        ),
        (
            "--parallel data=4,expert=4 --model llama3-8b",
            "--parallel 'data=4,expert=4': expert = 4, but traffic has no bytes for expert",
        ),
        ("--parallel tensor=2 --order tensor", "--order = 'tensor' lacks context"),
        (
            "--gpus 6 --group 4@rack --group 3@machine",
            "--group '3@machine': groups: the group of tasks 3, 4, 5 within 'machine' crosses the group of tasks 0, 1, "
            "2, 3 within 'rack'; one must be inside the other, or they are apart",
        ),
    ],
)
def test_what_contradicts_itself_is_named(call: Call, options: str, message: str) -> None:
    done = call("place", "hall.json", *options.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--group 2@rak", "not placed: --group or --prefer-group: level = 'rak' cannot be honoured: "),
        ("--balanced rak", "not placed: --balanced = 'rak' cannot be honoured: "),
    ],
)
def test_an_unknown_level_is_named(call: Call, options: str, reason: str) -> None:
    done = call("place", "hall.json", *options.split())
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(reason)
