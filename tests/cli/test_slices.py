"""MIG slices on the command line: GPUs that are cut, and policies that may reslice them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Call
from distributions import whole

CUT = "place dgx-a100 --policy fgd --gpus"


@whole
@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (
            f"{CUT} 2 --mig 1g.10gb --slice 0,1=1g.10gb",
            ["GPU 0: 1g.10gb in slot 0, is there", "GPU 1: 1g.10gb in slot 0, is there"],
        ),
        (
            f"{CUT} 2 --mig 1g.10gb --slice 0=1g.10gb --reslice",
            ["GPU 0: 1g.10gb in slot 0, is there", "GPU 1: 1g.10gb in slot 6, to be cut"],
        ),
        (
            f"{CUT} 8 --slice 3=1g.10gb --reslice",
            [
                "to be made whole first, without slices: GPU 3",
                "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7",
            ],
        ),
    ],
)
def test_place_says_what_to_do_with_the_gpus(call: Call, command: str, lines: list[str]) -> None:
    done = call(*command.split())
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-2:] == lines


@whole
def test_slices_stay_without_reslicing(call: Call) -> None:
    done = call(*f"{CUT} 8 --slice 3=1g.10gb".split())
    assert done.code == 1
    assert "not placed: cannot start now: needs 8 GPUs, 7 are free; 1 more is free if resliced" in done.out


@whole
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{CUT} 1 --slice 3=1g.10gb --slice 2,3=2g.20gb", "--slice '2,3=2g.20gb': GPU 3 is named twice"),
        (
            f"{CUT} 1 --slice 3=1g.10gb --busy 2-4",
            "--busy: GPU 3 is cut by --slice; a job takes the whole of a busy GPU",
        ),
        (
            "place dgx-a100 --gpus 1 --policy mapa-greedy --reslice",
            "--reslice: mapa-greedy does not slice GPUs",
        ),
        (
            "simulate dgx-a100 --policy fgd --reslice --make-room 5",
            "--make-room: room is made without reslicing GPUs, which --reslice asks for",
        ),
    ],
)
def test_what_slices_exclude(call: Call, command: str, message: str) -> None:
    done = call(*command.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


@whole
def test_simulated_jobs_get_slices_that_are_cut_for_them(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = "job_id,submit_s,num_gpus,duration_s,mig\na,0,2,30,1g.10gb\n"
    Path("jobs.csv").write_text(jobs, "utf-8")
    command = "simulate dgx-a100 --jobs jobs.csv --policies fgd,mapa-greedy"
    assert "rejected 1 under all policies: cannot start now" in call(*command.split()).out
    done = call(*command.split(), "--reslice")
    assert "mapa-greedy is set aside: --reslice: mapa-greedy does not slice GPUs\n" in done.err
    assert "rejected" not in done.out
    assert done.out.splitlines()[2].startswith("fgd ")


@whole
def test_slices_without_uuids_are_placed_with_a_note(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "gres.conf"
    text.write_text(
        "".join(f"Name=gpu Type=3g.20gb File=/dev/nvidia-caps/nvidia-cap{cap}\n" for cap in (21, 30))
    )
    done = call("place", str(text), "--gpus", "1")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == (
        "note: no variable is printed for the MIG slices nvidia-cap21: processes see slices by their UUIDs, which are "
        "not known; `nvidia-smi -L` prints them."
    )
    done = call("place", str(text), "--gpus", "1", "--json")
    assert (done.code, json.loads(done.out)["placement"]["env"]) == (0, None)


@whole
def test_place_repeats_notes_on_health(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "nodes.txt"
    text.write_text("NodeName=n1 CPUAlloc=4 Gres=gpu:a100:4\n")
    assert "note: Nodes whose state is not given" in call("place", str(text), "--gpus", "1").out


@whole
def test_each_machine_gets_the_variable_of_its_maker(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "nodes.yaml"
    node = "kind: Node\nmetadata: {{name: {0}}}\nstatus: {{capacity: {{{1}.com/gpu: '2'}}}}\n"
    text.write_text(node.format("n", "nvidia") + "---\n" + node.format("a", "amd"))
    done = call("place", str(text), "--gpus", "4", "--pattern", "independent")
    assert done.out.splitlines()[-2:] == [
        "n: CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1",
        "a: ROCR_VISIBLE_DEVICES=0,1",
    ]
    done = call("place", str(text), "--gpus", "4")
    assert done.code == 1
    assert "needs 4 GPUs of one maker" in done.out
