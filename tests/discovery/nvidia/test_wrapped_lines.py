"""The matrix of `nvidia-smi topo -m` as a narrow terminal breaks it: read as if it were whole, or refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from refusals import refusal
from topoplace.discovery.nvidia import topo_matrix

LEGEND = (
    "\n\nLegend:\n\n  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
)


def printed(gpus: int, nics: int, label: str, cpus: tuple[str, str], *, gpu_numa: bool) -> str:
    names = [f"GPU{i}" for i in range(gpus)] + [f"NIC{i}" for i in range(nics)]
    titles = ["CPU Affinity", "NUMA Affinity", *(["GPU NUMA ID"] if gpu_numa else [])]
    lines = ["\t".join(["", *names, *titles])]
    for i, name in enumerate(names):
        cells = [
            " X " if i == j else label if max(i, j) < gpus else "PIX" if abs(i - j) == gpus else "SYS"
            for j in range(len(names))
        ]
        half = 2 * i // gpus
        affinities = [cpus[half], str(half), *(["", "N/A"] if gpu_numa else [])] if i < gpus else []
        lines.append("\t".join([name, *cells, *affinities]))
    return "\n".join(lines) + LEGEND


def broken(text: str, width: int, *, stripped: bool) -> str:
    """Return `text` as copied from a terminal of `width` columns."""
    pieces = (
        line[i : i + width]
        for line in text.expandtabs().split("\n")
        for i in range(0, max(len(line), 1), width)
    )
    return "\n".join(piece.rstrip() if stripped else piece for piece in pieces)


EIGHT = printed(8, 4, "NV18", ("0-31,64-95", "32-63,96-127"), gpu_numa=True)


def test_80_columns_and_8_gpus() -> None:
    for stripped in (False, True):
        text = broken(EIGHT, 80, stripped=stripped)
        assert text.count("\n") > EIGHT.count("\n") + 8
        assert topo_matrix.recognised(text)
        assert topo_matrix.parse(text) == topo_matrix.parse(EIGHT)


@given(
    gpus=st.sampled_from([2, 4, 8]),
    nics=st.integers(0, 12),
    label=st.sampled_from(["NV18", "NV4", "SYS"]),
    cpus=st.sampled_from([("0-31,64-95", "32-63,96-127"), ("0-23,48-71", "24-47,72-95"), ("0-7", "8-15")]),
    gpu_numa=st.booleans(),
    width=st.integers(60, 200),
    stripped=st.booleans(),
)
def test_any_width_gives_the_same_or_is_refused(
    gpus: int, nics: int, label: str, cpus: tuple[str, str], gpu_numa: bool, width: int, stripped: bool
) -> None:
    whole = printed(gpus, nics, label, cpus, gpu_numa=gpu_numa)
    try:
        found = topo_matrix.parse(broken(whole, width, stripped=stripped))
    except tp.TopologyError as error:
        assert str(error).startswith("line ")  # noqa: PT017 - either outcome is right
    else:
        assert found == topo_matrix.parse(whole)


def test_what_is_not_clear_is_refused() -> None:
    text = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affi\nnity\n"
        "GPU0\t X \tNV4\t0-1,3-5,7-8,9-1\n1\n"
        "GPU1\tNV4\t X \t0-1,3-5\t0\n"
    )
    assert refusal(topo_matrix.parse, text).startswith(
        "line 3: goes on in line 4, and where a cell ends is not clear; give the text as printed to a wider terminal"
    )
