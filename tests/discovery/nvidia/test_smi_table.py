"""The table of `nvidia-smi`: GPUs, slices, and what is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from topoplace import TopologyError, discovery
from topoplace.discovery.nvidia import smi_table

TABLE = (Path(__file__).parents[2] / "data/smitable-2gpu.txt").read_text("utf-8")


def in_use(text: str) -> list[int | None]:
    return [one.number for one in smi_table.in_use(text) if one.taken]


def test_gpus() -> None:
    found = tp.read(TABLE)
    assert [(gpu.name, gpu.model, gpu.fraction, gpu.healthy) for gpu in found.gpus] == [
        ("GPU0", "A100", 1.0, True),
        ("GPU1", "A100", 1.0, False),
        ("GPU3", "A100", 1.0, True),
    ]
    assert found.gpus[0].memory_gb == pytest.approx(42.95, abs=0.01)
    assert found.gpus[2].bus_id == "00000000:47:00.0"
    assert found.notes == (
        "`nvidia-smi` does not state how the GPUs are connected; `nvidia-smi topo -m` does.",
        "In use, and free here: GPU0; --busy-from reads which they are from the same text.",
        "MiB of memory in use: GPU0 7001, GPU1 45, GPU3 517.",
        "GPU1 is cut into MIG slices, so that no job can have it whole, and is marked unhealthy: "
        "MIG0 (3g, 20096 MiB), MIG1 (2g, 9984 MiB); `nvidia-smi -L` gives the slices as devices, with the UUIDs that "
        "jobs need.",
    )


def test_mig_mode_without_slices_is_no_gpu_for_a_job() -> None:
    text = "\n".join(line for line in TABLE.split("\n") if not line.startswith("|  1    "))
    found = tp.read(text)
    assert [gpu.healthy for gpu in found.gpus] == [True, False, True]
    assert any(
        note.startswith("GPU1 is in MIG mode without slices, so that no job can") for note in found.notes
    )


@pytest.mark.parametrize("count", range(1, 4))
def test_jobs_get_whole_gpus_by_their_numbers(count: int) -> None:
    cluster = tp.Cluster(tp.read(TABLE))
    job = tp.JobGraph.ring(count) if count > 1 else tp.JobGraph.independent(1)
    decided = tp.policies.get("best-fit").place(job, cluster)
    if count < 3:  # GPU 1 is cut
        assert isinstance(decided, tp.Placement)
        assert decided.env()["CUDA_VISIBLE_DEVICES"] == ("0", "0,3")[count - 1]
    else:
        assert decided is None


def test_which_are_in_use() -> None:
    assert in_use(TABLE) == [0, 1]  # GPU 1 is cut into slices
    assert in_use(TABLE.replace("      C   python", "      G   python").replace("7001MiB", " 101MiB")) == [1]
    assert in_use(TABLE.replace("45MiB", "20045MiB")) == [0, 1]  # by a process that is not listed
    old = TABLE.replace(
        "|    3   N/A  N/A            2345      G ", "|    3                       2345    C+G "
    )
    assert in_use(old) == [0, 1, 3]


def test_the_gpus_of_a_topology_are_found_by_their_numbers() -> None:
    matrix = "\tGPU0\tGPU1\tGPU3\nGPU0\t X \tNV1\tNV1\nGPU1\tNV1\t X \tNV1\nGPU3\tNV1\tNV1\t X \n"
    topology = tp.read(matrix, gpu_model="A100")
    assert discovery.busy_gpus(TABLE.replace("517MiB", "9517MiB"), topology) == (0, 1, 2)


def test_the_first_of_several_tables_is_read() -> None:
    found = tp.read(TABLE + TABLE)
    assert found.num_gpus == 3
    assert "The text has 2 tables; the first is read." in found.notes


def test_errors_of_the_tool_are_noted() -> None:
    lost = "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n"
    found = tp.read(lost + TABLE)
    assert any(lost.strip() in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE[:400], "the table has no GPU"),
        (TABLE.replace("|   1  NVIDIA", "|   0  NVIDIA"), "GPU 0 appears twice"),
        (TABLE.replace("| N/A   30C", "[...]\n| N/A   30C"), "marks omitted text"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        smi_table.parse(text)


SICK = """\
| NVIDIA-SMI 570.124.06    Driver Version: 570.124.06    CUDA Version: 12.8     |
|   0  NVIDIA B200     On  |   00000000:1B:00.0 Off |                    0 |
| N/A   33C    P0   144W / 1000W |  0MiB / 183359MiB |      0%      Default |
+--------------------------+------------------------+----------------------+
|   1  NVIDIA B200     On  |   00000000:43:00.0 Off |                    0 |
| ERR!  35C    P0   540W / 1000W |  0MiB / 183359MiB |      0%   E. Process |
+--------------------------+------------------------+----------------------+
|   2  NVIDIA B200     On  |   00000000:52:00.0 Off |                 ERR! |
| ERR!  35C    P0   540W / 1000W |  0MiB / 183359MiB |      0%      Default |
+--------------------------+------------------------+----------------------+
|   3  NVIDIA B200     On  |   00000000:61:00.0 Off |                    0 |
| N/A   35C    P0   540W / 1000W |  GPU is lost      |      0%      Default |
+--------------------------+------------------------+----------------------+
|   4  NVIDIA B200     On  |   00000000:71:00.0 Off |                    0 |
| N/A   35C    P0   540W / 1000W |  0MiB / 183359MiB |      0%   Prohibited |
+--------------------------+------------------------+----------------------+
Unable to determine the device handle for GPU5: 0000:81:00.0: Unknown Error
"""


def test_broken_gpus() -> None:
    found = tp.read(SICK)
    assert [gpu.healthy for gpu in found.gpus] == [True, True, False, False, False]
    assert {
        "GPU1: fields that are ERR!: 1; its compute mode is E. Process.",
        "GPU2 is marked unhealthy: fields that are ERR!: 2.",
        "GPU3 is marked unhealthy: the driver has lost it.",
        "GPU4 is marked unhealthy: its compute mode is Prohibited.",
    } < {*found.notes}
    assert any(note.startswith("A GPU is missing: ") and "0000:81:00.0" in note for note in found.notes)


def test_a_gpu_that_a_list_shows_cut_is_not_whole_in_the_matrix_beside_it() -> None:
    listed = (
        "GPU 0: A100 (UUID: GPU-0)\n  MIG 3g.20gb     Device  0: (UUID: MIG-0)\nGPU 1: A100 (UUID: GPU-1)\n"
    )
    found = tp.read(f"{listed}\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n")
    assert [gpu.healthy for gpu in found.gpus] == [False, True]


def test_a_mig_mode_that_comes_with_the_next_reset_counts() -> None:
    row = "|   {}  NVIDIA B200     On  |   00000000:{}B:00.0 Off |                    0 |\n"
    use = "| N/A   33C    P0   144W / 1000W |  0MiB / 183359MiB |      0%      Default |\n"
    gpus = [
        row.format(i, i) + use + f"|       |     |  {mode} |\n"
        for i, mode in enumerate(("Enabled*", "Disabled"))
    ]
    found = tp.read(SICK.splitlines(keepends=True)[0] + "".join(gpus))
    assert [gpu.healthy for gpu in found.gpus] == [False, True]


def test_uncorrectable_errors_are_noted() -> None:
    errors = TABLE.replace("Off |                    0 |", "Off |                   12 |", 1)
    assert errors != TABLE
    found = tp.read(errors)
    assert "GPU0: uncorrectable ECC errors since the driver was loaded: 12." in found.notes
    assert found.gpus[0].healthy


@pytest.mark.parametrize("lines", [-2, -12])
def test_a_table_that_is_cut_is_noted(lines: int) -> None:
    whole = TABLE.rstrip().split("\n")
    cut = [line for line in whole[:lines] if line]
    while cut[-1].startswith("+"):
        cut.pop()
    notes = tp.read("\n".join(cut)).notes
    assert any(note.startswith("The table has no lower border, so its end is missing") for note in notes)
