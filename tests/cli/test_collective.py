"""`topoplace show --collective`, and the line of `topoplace show` on collective operations."""

from __future__ import annotations

import json

import pytest

from command_line import Call


def test_the_command_prints_best_median_and_worst(call: Call) -> None:
    shown = call("show", "dgx1-v100", "--collective", 4).out.splitlines()
    assert shown[0] == "dgx1-v100: all 70 sets of 4 GPUs, nccl-2.30"
    assert [line.split()[:3] for line in shown[2:5]] == [
        ["best", "0,1,2,3", "80"],
        ["median", "0,1,2,6", "20"],
        ["worst", "0,1,2,7", "6"],
    ]
    assert shown[5:] == [
        "mean of the rings: 24.6 GB/s",
        "note: The topology does not state its host; CPUs usual with its PCIe are assumed.",
    ]


def test_the_command_writes_json(call: Call) -> None:
    found = json.loads(call("show", "dgx-h100", "--collective", 3, "--rates", "nccl-2.18", "--json").out)
    assert (found["rates"], found["sets"], found["choice_matters"]) == ("nccl-2.18", 56, False)
    assert found["best"]["ring_gb_per_s"] == found["worst"]["ring_gb_per_s"] == 360
    assert found["median"]["order"] == [0, 1, 2]


def test_the_command_names_nvls_where_it_is_faster(call: Call) -> None:
    note = "note: An all-reduce in the NVSwitches (NVLS) is faster than rings: 476 GB/s."
    assert note in call("show", "dgx-h100", "--collective", 8).out.splitlines()
    assert "NVLS" not in call("show", "dgx-h100", "--collective", 8, "--rates", "nccl-2.30-rings").out
    assert "NVLS" not in call("show", "dgx-a100", "--collective", 8).out
    found = json.loads(call("show", "dgx-h100", "--collective", 8, "--json").out)
    assert found["best"]["ring_gb_per_s"] == 360
    assert found["best"]["all_reduce_gb_per_s"] == pytest.approx(476)


def test_place_names_nvls_for_jobs_of_all_reduces_alone(call: Call) -> None:
    assert "476 NVLS" in call("place", "dgx-h100", "--pattern", "allreduce", "--gpus", 8).out
    assert "NVLS" not in call("place", "dgx-h100", "--pattern", "chain", "--gpus", 8).out
    assert "NVLS" not in call("place", "dgx-a100", "--pattern", "allreduce", "--gpus", 8).out
    assert "NVLS" not in call("place", "dgx-h100", "--pattern", "allreduce", "--gpus", 2).out


@pytest.mark.parametrize(
    ("machine", "library"),
    [
        ("mi300x --collective 4", "RCCL"),
        ("mi250x --collective 4", "RCCL"),
        ("tpu-v4-64 --one host0 --collective 2", "XLA"),
        ("dgx-h100 --collective 4", "NCCL"),
    ],
)
def test_figures_for_other_libraries_are_said_to_be_those_of_nccl(
    call: Call, machine: str, library: str
) -> None:
    note = f"note: These GPUs run {library}; the figures are what NCCL would plan"
    assert (note in call("show", *machine.split()).out) == (library != "NCCL")
    assert json.loads(call("show", *machine.split(), "--json").out)["library"] == library


def test_one_machine_of_a_cluster(call: Call) -> None:
    assert (
        "gb200-tray: all 6 sets of 2 GPUs"
        in call("show", "gb200-nvl72", "--one", "tray03", "--collective", 2).out
    )


def test_show_tells_whether_the_choice_matters(call: Call) -> None:
    shown = call("show", "dgx1-v100").out
    assert "rings of 4 GPUs carry 80 GB/s at best, 24.6 on average, 6 at worst, with an assumed host" in shown
    assert "collectives: rings of any 4 GPUs carry 240 GB/s" in call("show", "dgx-a100").out
    assert "collectives" not in call("show", "mi300x").out


def test_a_cluster_needs_the_name_of_a_machine(call: Call) -> None:
    done = call("show", "gb200-nvl72", "--collective", 4)
    assert (done.code, done.out) == (2, "")
    assert done.err == "topoplace: gb200-nvl72 has 18 machines: --one names the one to rate\n"
