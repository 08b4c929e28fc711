"""`topoplace place` begins with what it wins, and how far that is from the best of the idle machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from topoplace.cli import headline
from topoplace.cli.example_files import content
from topoplace.policies.yardsticks import yardsticks


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return the path of the example of a cluster."""
    path = tmp_path / "cluster.json"
    path.write_bytes(content("cluster.json"))
    return path


def first_lines(out: str) -> list[str]:
    return out.partition("\n\n")[0].splitlines()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "dgx1-v100 --busy 0,5",
            [
                "GPUs 2, 3, 7, 6: 40 GB/s; the lowest free ids 6 GB/s (6.7 ×); proven best",
                "at best on the idle machine 80 GB/s: communication takes 2 × as long",
            ],
        ),
        ("dgx1-v100", ["GPUs 0, 1, 2, 3: 80 GB/s; these are the lowest free ids; proven best"]),
        (
            "dgx-h100 --gpus 8 --pattern allreduce",
            ["GPUs 0, 1, 2, 3, 4, 5, 6, 7: 476 GB/s by NVLS; these are the lowest free ids; proven best"],
        ),
        (
            "dgx1-v100 --busy 0,1,4,6 --pattern chain",
            [
                "GPUs 2, 3, 7, 5: communication 20 ms; the same GPUs in the order of their ids 41.7 ms (2.1 ×); "
                "proven best",
                "at best on the idle machine 10 ms: communication takes 2 × as long",
            ],
        ),
        (
            "dgx1-v100 --busy 0,5 --policy baseline",
            [
                "GPUs 1, 2, 3, 4: 6 GB/s; these are the lowest free ids",
                "at best on the idle machine 80 GB/s: communication takes 13 × as long",
            ],
        ),
        ("dgx1-v100 --gpus 1", ["GPU 0: nothing is communicated"]),
        (
            "dgx1-v100 --gpus 2 --gpu-fraction 0.5",
            ["GPUs 0, 3: not compared with other GPUs, as the job takes parts of GPUs"],
        ),
        ("gb200-nvl72 --gpus 4", ["tray00 0–3: 720 GB/s; these are the lowest free ids"]),
    ],
)
def test_first_lines(call: Call, command: str, said: list[str]) -> None:
    assert first_lines(call("place", *command.split()).out) == said


def test_a_speed_that_is_assumed_is_said_to_be(call: Call, tmp_path: Path) -> None:
    matrix = "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV2\tX\n"
    path = tmp_path / "two.txt"
    for label, said in (("PIX", "12 GB/s (assumed)"), ("NV2", "40 GB/s (assumed)")):
        path.write_text(matrix.replace("NV2", label), encoding="utf-8")
        assert first_lines(call("place", path, "--gpus", 2).out)[0].startswith(f"GPUs 0, 1: {said}; ")
    model = call("place", path, "--gpus", 2, "--gpu-model", "Tesla V100-SXM2-16GB")
    assert first_lines(model.out)[0].startswith("GPUs 0, 1: 40 GB/s; ")


def test_remote_gpus_are_not_compared_and_their_variables_need_servers(call: Call, cluster: Path) -> None:
    answer = call("place", cluster, "--policy", "drmaestro", "--gpus", 2, "--busy", "0-6,8-14,16-30")
    assert first_lines(answer.out) == [
        "gpu0 7; gpu1 7: not compared with other GPUs, as it reaches some over the network"
    ]
    assert "note: no variable is printed, as the job reaches GPUs over the network" in answer.out


def test_the_best_of_an_idle_cluster_is_what_was_found_unless_it_is_proven(call: Call, cluster: Path) -> None:
    job = "--role prefill=4 --role decode=8:allreduce --between prefill+decode=8 --busy 0,8,16,24"
    said = first_lines(call("place", cluster, *job.split()).out)
    assert said[1] == "the best found on the idle cluster 102 ms: communication takes 17 % longer"


@pytest.mark.parametrize(
    ("ratio", "gpus", "said"),
    [
        (1.071, (4, 6), "the lowest free ids 37.3 GB/s (7.1 % slower)"),
        (0.95, (4, 6), "the lowest free ids are faster: 42.1 GB/s (5.3 % faster)"),
        (1.071, (3, 0), "the same GPUs in the order of their ids 37.3 GB/s (7.1 % slower)"),
        (0.5, (4, 6), "the lowest free ids are faster: 80 GB/s (2 ×)"),
    ],
)
def test_a_small_difference_says_which_is_slower(ratio: float, gpus: tuple[int, ...], said: str) -> None:
    job, cluster = tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("dgx1-v100"))
    placed = tp.Placement(gpus=(0, 3), topology=cluster.topology, job=job)
    found = yardsticks(placed, job, cluster)
    assert found
    own = found.placed
    lowest = own._replace(gpus=gpus, seconds=ratio * own.seconds, gb_per_s=own.gb_per_s / ratio)
    (line, *_) = headline.lines("GPUs", placed, found._replace(lowest=lowest), is_idle=True)
    assert said in line


def test_a_job_that_states_its_operations_is_told_its_share_of_a_step(call: Call) -> None:
    command = "dgx1-v100 --busy 0,1,5 --parallel tensor=2,data=2 --model llama3-8b"
    assert first_lines(call("place", *command.split()).out)[1] == (
        "as fast as the best found on the idle machine; communication is 11 % of a step, GPUs computing at 40 % of "
        "their peak"
    )


def test_json_has_the_same_figures(call: Call) -> None:
    printed = json.loads(call("place", "dgx1-v100", "--busy", "0,5", "--json").out)
    best = printed["placement"]
    assert (best["gb_per_s"], best["time"], best["slowest"]) == (40, 0.0375, "rings of GPUs 2, 3, 6, 7")
    assert best == printed["candidates"][0]
    beside = printed["yardsticks"]
    assert [beside[name]["gb_per_s"] for name in ("placed", "lowest", "idle")] == [40, 6, 80]
    assert beside["placed"]["time"] == best["time"]
