"""Guesses at the speed of NVLinks: by models that the text names, by numbers of links, CPUs and adapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import topoplace as tp

parse = tp.Topology.from_nvidia_smi
Cell = Callable[[int, int], str]


def matrix(
    gpus: int, cell: Cell, cpus: Sequence[str], extra: Sequence[Sequence[str]] = (), title: str = ""
) -> str:
    """The text of a matrix; `extra` are the rows of adapters, labels to GPUs first."""
    names = [f"GPU{i}" for i in range(gpus)] + [f"NIC{i}" for i in range(len(extra))]
    lines = ["\t".join(["", *names, "CPU Affinity", *([title] if title else [])])]
    for i in range(gpus):
        row = ["X" if i == j else cell(i, j) for j in range(gpus)] + [labels[i] for labels in extra]
        lines.append("\t".join([names[i], *row, cpus[i], *(["4"] if title else [])]))
    lines += ["\t".join([name, *labels]) for name, labels in zip(names[gpus:], extra, strict=True)]
    return "\n".join(lines) + "\n"


def in_pairs(label: str, other: str = "SYS") -> Cell:
    return lambda i, j: label if i // 2 == j // 2 else other


def cube(i: int, j: int) -> str:
    """The NVLinks of a DGX-1 with P100: two squares with diagonals, joined at their corners."""
    return "NV1" if i // 4 == j // 4 or i % 4 == j % 4 else "SYS"


def everywhere(label: str) -> Cell:
    return lambda _i, _j: label


def apart(nics: int, label: str) -> list[list[str]]:
    """Rows of adapters far from 8 GPUs, with `label` between each other."""
    return [["NODE"] * 8 + ["X" if i == j else label for j in range(nics)] for i in range(nics)]


HALVES = ["0-55,112-167"] * 4 + ["56-111,168-223"] * 4
CASES = {
    "DGX-1 of P100": (matrix(8, cube, ["0-19,40-59"] * 8), 20.0),
    "old driver": (matrix(4, in_pairs("NV2", "SOC"), ["0-31"] * 4), 20.0),
    "Minsky": (matrix(4, in_pairs("NV2"), ["0-79", "0-79", "80-159", "80-159"]), 20.0),
    "bridges": (matrix(4, in_pairs("NV4"), ["0-31"] * 4), 14.0625),
    "one bridge": (matrix(4, lambda i, j: "NV4" if i + j == 1 else "SYS", ["0-31"] * 4), 14.0625),
    "GB200": (matrix(4, everywhere("NV18"), ["0-71", "0-71", "72-143", "72-143"]), 50.0),
    "memory of GPUs": (matrix(4, everywhere("NV18"), ["0-63"] * 4, title="GPU NUMA ID"), 50.0),
    "management ports": (matrix(8, everywhere("NV18"), HALVES, apart(4, "PIX")), 50.0),
    "other adapters": (matrix(8, everywhere("NV18"), HALVES, apart(4, "NODE")), 25.0),
    "DGX H100": (matrix(8, everywhere("NV18"), HALVES), 25.0),
    "GH200": (matrix(4, everywhere("NV6"), ["0-71", "72-143", "144-215", "216-287"]), 25.0),
    "DGX A100": (matrix(8, everywhere("NV12"), HALVES), 25.0),
    "DGX-1 of V100": (matrix(4, lambda i, j: "NV2" if i + j == 3 else "NV1", ["0-19"] * 4), 25.0),
    "pairs of V100": (matrix(4, in_pairs("NV3"), ["0-79", "0-79", "80-159", "80-159"]), 25.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_speed_is_guessed_and_marked(name: str) -> None:
    text, gb_per_s = CASES[name]
    topology = parse(text)
    found = {
        link.gb_per_s / link.lanes
        for _, _, link in topology.links
        if link.kind in (tp.LinkKind.NVLINK, tp.LinkKind.NVSWITCH)
    }
    assert found == {gb_per_s}
    assert set(topology.assumed) & {link.kind for _, _, link in topology.links}
    assert topology.notes[0].startswith(
        f"The GPU model is not given: {gb_per_s:g} GB/s per NVLink is assumed"
    )


def test_two_gpus_near_each_of_two_cpus_are_a_tray() -> None:
    rows = [f"GPU{i} {' '.join('X' if i == j else 'NV18' for j in range(4))} {i // 2}\n" for i in range(4)]
    tray = parse("GPU0 GPU1 GPU2 GPU3 NUMA Affinity\n" + "".join(rows))
    assert {link.gb_per_s for _, _, link in tray.links} == {900.0}
    assert "as of GB200 or GB300, by 4 GPUs" in tray.notes[0]


PAIR = matrix(2, everywhere("NV4"), ["0-31", "0-31"])


@pytest.mark.parametrize(
    "named",
    [
        "GPU 0: NVIDIA A30 (UUID: GPU-5d5b)\nGPU 1: NVIDIA A30 (UUID: GPU-5d5c)\n",
        "GPU models and configuration:\nGPU 0: NVIDIA A30\n",
        "GPU 0,1: NVIDIA A30\n",
        "|   0  NVIDIA A30          On  | 00000000:2A:00.0 Off |   0 |\n",
    ],
)
def test_a_model_that_lines_next_to_the_matrix_name_is_known(named: str) -> None:
    topology = parse(named + PAIR)
    assert (topology.gpus[0].model, topology.bandwidth(0, 1), topology.assumed) == ("A30", 100.0, ())
    assert parse(named + PAIR, "RTX A6000").bandwidth(0, 1) == 56.25


def test_a_model_that_prose_mentions_is_a_guess() -> None:
    topology = parse("On our A30 servers:\n\n" + PAIR)
    assert (topology.gpus[0].model, topology.bandwidth(0, 1)) == (None, 100.0)
    assert topology.assumed == (tp.LinkKind.NVLINK,)
    assert topology.notes[0].endswith("is assumed, as of A30, which the text mentions.")
    for several in ("A30, A6000 or H100?\n", "Our P100 have NV18?\n"):
        text = matrix(8, everywhere("NV18"), HALVES)
        assert parse(several + text).notes[0] == parse(text).notes[0]


def test_models_without_nvlinks_name_no_speed() -> None:
    assert parse("GPU 0: NVIDIA L40S\n" + PAIR).assumed == (tp.LinkKind.NVLINK,)
    assert parse("GPU 0: NVIDIA L40S\n" + PAIR.replace("NV4", "PHB")).gpus[0].model == "NVIDIA L40S"


def test_a_given_model_leaves_nothing_to_guess() -> None:
    assert parse(PAIR, "A30").assumed == ()
    assert parse(PAIR.replace("NV4", "PHB")).assumed == ()
