from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from growth import assert_linear
from topoplace.discovery.nvidia import topo_matrix
from topoplace.topology import compare
from topoplace.topology.links.link_kinds import PATHS

parse = tp.Topology.from_nvidia_smi
LinkKind = tp.LinkKind

# As a driver prints it on two sockets: tabs, underlined header, an empty cell before the last title.
MODERN = """\
\x1b[4m\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV4\tSYS\tSYS\tPIX\tSYS\t0-15,32-47\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\tPXB\tSYS\t0-15,32-47\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNODE\tSYS\tPHB\t16-31,48-63\t1\t\tN/A
GPU3\tSYS\tSYS\tNODE\t X \tSYS\tNODE\t16-31,48-63\t1\t\tN/A
NIC0\tPIX\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPHB\tNODE\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_bond_1
"""

BLANKS = """
        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity
GPU0     X      PIX     SOC     0-5             N/A
GPU1    PIX      X      SOC     0-5             N/A
GPU2    SOC     SOC      X      6-11            N/A
"""

SWITCHED = "\n".join(
    ["\tGPU0\tGPU1\tGPU2", "GPU0\tX\tNV12\tNV12", "GPU1\tNV12\tX\tNV12", "GPU2\tNV12\tNV12\tX"]
)


def links(topology: tp.Topology) -> Counter[tuple[LinkKind, int]]:
    pairs = ((u, v) for v in range(topology.num_gpus) for u in range(v))
    return Counter((link.kind, link.lanes) for link in (topology.link(u, v) for u, v in pairs))


def test_modern_text() -> None:
    topology = parse(MODERN, "NVIDIA A100-SXM4-40GB", name="box", machine="node7")
    assert topology.link(0, 1) == tp.Link(LinkKind.NVLINK3, 4, 100.0)
    assert topology.link(0, 2) == tp.Link(LinkKind.SYSTEM, 1, 12.0)
    assert topology.link(2, 3) == tp.Link(LinkKind.HOST_BRIDGES, 1, 16.0)
    assert topology.gpus[3] == tp.Gpu(3, "GPU3", "A100", "node7", 1, numa_node=1, cpus="16-31,48-63")
    assert topology.nics == (
        tp.Nic("mlx5_0", ("PIX", "PXB", "SYS", "SYS")),
        tp.Nic("mlx5_bond_1", ("SYS", "SYS", "PHB", "NODE")),
    )
    assert topology.name == "box"


def test_blanks_old_labels_and_unknown_numa() -> None:
    topology = parse(BLANKS, pcie_gb_per_s=6.0)
    assert [gpu.socket for gpu in topology.gpus] == [0, 0, 1]
    assert topology.link(0, 1) == tp.Link(LinkKind.PCIE, 1, 6.0)
    assert topology.link(0, 2) == tp.Link(LinkKind.SYSTEM, 1, 3.0)


@pytest.mark.parametrize(
    ("model", "gb_per_s", "said"),
    [
        (None, 12.0, "6 (SYS) GB/s are assumed."),
        ("K80", 12.0, "6 (SYS) GB/s are assumed."),
        ("Tesla T4", 12.0, "6 (SYS) GB/s are assumed, as of PCIe 3 x16, which these GPUs have."),
        ("NVIDIA L40S", 24.0, "12 (SYS) GB/s are assumed, as of PCIe 4 x16, which these GPUs have."),
        (
            "NVIDIA GeForce RTX 5090",
            48.0,
            "24 (SYS) GB/s are assumed, as of PCIe 5 x16, which these GPUs have.",
        ),
    ],
)
def test_the_model_tells_the_generation_of_pcie(model: str | None, gb_per_s: float, said: str) -> None:
    topology = parse(BLANKS, model)
    assert topology.default == topology.link(0, 1).gb_per_s == gb_per_s
    assert any(note.startswith("The speed of PCIe is not given") and said in note for note in topology.notes)
    assert parse(BLANKS, model, pcie_gb_per_s=6.0).default == 6.0


@pytest.mark.parametrize(("num_gpus", "published"), [(8, 28), (4, 35)])  # NVIDIA/nccl issue 1639
@pytest.mark.parametrize("near", ["NODE", "PHB"])
def test_rings_of_eight_5090_on_two_sockets(near: str, num_gpus: int, published: float) -> None:
    names = [f"GPU{i}" for i in range(8)]
    lines = ["\t".join(["", *names, "NUMA Affinity"])]
    for i in range(8):
        cells = ["X" if i == j else near if i // 4 == j // 4 else "SYS" for j in range(8)]
        lines.append("\t".join([names[i], *cells, str(i // 4)]))
    topology = parse("\n".join(lines), "NVIDIA GeForce RTX 5090", assume_no_nvlink=True)
    assert 0.7 <= tp.collective.ring_bandwidth(topology, range(num_gpus)) / published <= 1.3


def test_the_five_paths_differ_in_kind_and_speed() -> None:
    labels = ("PIX", "PXB", "PHB", "NODE", "SYS")
    header = "\t" + "\t".join(f"GPU{i}" for i in range(6))
    first = "\t".join(["GPU0", "X", *labels])
    others = [
        "\t".join([f"GPU{i}", labels[i - 1], *("X" if i == j else "SYS" for j in range(1, 6))])
        for i in range(1, 6)
    ]
    topology = parse("\n".join([header, first, *others]), pcie_gb_per_s=24.0)
    found = [topology.link(0, i) for i in range(1, 6)]
    assert [(link.kind.label, link.gb_per_s) for link in found] == [
        ("PIX", 24.0),
        ("PXB", 22.0),
        ("PHB", 20.0),
        ("NODE", 16.0),
        ("SYS", 12.0),
    ]
    assert [topology.distance(0, i) for i in range(1, 6)] == [1.0, 1.0, 1.0, 1.0, 20.0]
    classes = topology.with_distances("classes")
    assert [classes.distance(0, i) for i in range(1, 6)] == [2.0, 3.0, 4.0, 5.0, 20.0]
    assert tp.Topology.from_json(classes.to_json()) == classes


def test_without_affinities_the_paths_tell_the_sockets() -> None:
    text = """
        GPU0  GPU1  GPU2  GPU3
    GPU0 X    SYS   PXB   SYS
    GPU1 SYS  X     SYS   NODE
    GPU2 PXB  SYS   X     SYS
    GPU3 SYS  NODE  SYS   X
    """
    assert [gpu.socket for gpu in parse(text).gpus] == [0, 1, 0, 1]
    assert [gpu.socket for gpu in parse(text.replace("SYS", "NV4")).gpus] == [None] * 4


@pytest.mark.parametrize(
    "other",
    [
        MODERN.replace("\n", "\r\n"),
        "\ufeff$ nvidia-smi topo -m\n" + MODERN,
        "\n".join("      " + line for line in MODERN.split("\n")),
        MODERN.replace("\t X \t", "\tX\t"),
        re.sub(r"\x1b\[[0-9]m", "", MODERN).expandtabs(),
        MODERN.rstrip("\n"),
        MODERN.replace("GPU2\tSYS", "\x1b[1mGPU2\x1b[22m\tSYS"),
    ],
    ids=["crlf", "prompt", "indented", "no padding", "blanks", "no end of line", "bold cell"],
)
def test_other_dress_same_topology(other: str) -> None:
    assert parse(other) == parse(MODERN)


def test_one_gpu() -> None:
    topology = parse("\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n", "H100")
    assert (topology.num_gpus, topology.links, topology.gpus[0].socket) == (1, (), 0)


def test_gpus_keep_their_names_and_order() -> None:
    topology = parse("GPU3 GPU1\nGPU1 PHB X\nGPU3 X PHB\n")
    assert [gpu.name for gpu in topology.gpus] == ["GPU3", "GPU1"]


@pytest.mark.parametrize(
    ("model", "gb_per_s"),
    [(None, 56.25), ("Tesla P100-SXM2-16GB", 80.0), ("rtx 3090", 56.25), ("GB200", 200.0)],
)
def test_model_sets_the_speed_of_a_lane(model: str | None, gb_per_s: float) -> None:
    assert parse(MODERN, model).bandwidth(0, 1) == gb_per_s


def test_more_lanes_than_wires_lead_to_a_switch() -> None:
    assert links(parse(SWITCHED)) == {(LinkKind.NVSWITCH, 12): 3}
    four = SWITCHED.replace("NV12", "NV4")
    assert links(parse(four)) == {(LinkKind.NVLINK, 4): 3}
    assert links(parse(four, "V100")) == {(LinkKind.NVSWITCH, 4): 3}
    assert links(parse(four, "H100")) == {(LinkKind.NVLINK4, 4): 3}


def test_affinity_cells_may_be_blank() -> None:
    tabs = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tPHB\t\t1\nGPU1\tPHB\tX\t\t0\n"
    assert [gpu.socket for gpu in parse(tabs).gpus] == [0, 1]
    assert [gpu.socket for gpu in parse(tabs.replace("\nGPU", "\n\tGPU")).gpus] == [0, 1]
    blanks = (
        "      GPU0  GPU1  CPU Affinity  NUMA Affinity\n"
        "GPU0   X    PHB                 1\nGPU1  PHB    X    0-3\n"
    )
    assert [gpu.socket for gpu in parse(blanks).gpus] == [None, None]
    assert [gpu.socket for gpu in parse(blanks.replace("0-3", "             0")).gpus] == [0, 1]


BAD_TEXTS = [
    ("", "no GPU: no line is a header"),
    ("No devices were found\n", "no GPU: no line is a header"),
    (MODERN.replace("NV4\tSYS\tSYS\tPIX", "NV4\tSYS\tSYS", 1), "line 2: 5 columns, the header has 6"),
    (
        MODERN.replace("NV4\tSYS\tSYS\tPIX", "NV4\tSYS\tSYS\tPIX\tPIX", 1),
        "line 2: 7 columns, the header has 6",
    ),
    (MODERN.replace("GPU3\tSYS", "GPU3"), "line 5: 5 columns, the header has 6"),
    (MODERN.replace("NODE\tSYS\tPHB", "NVX\tSYS\tPHB"), "line 4: unknown label 'NVX' in column GPU3"),
    (MODERN.replace("NODE\tSYS\tPHB", "NV0\tSYS\tPHB"), "line 4: unknown label 'NV0' in column GPU3"),
    (
        MODERN.replace("GPU1\tNV4", "GPU1\tNV2"),
        "line 2: GPU0 to GPU1 is NV4, but line 3: GPU1 to GPU0 is NV2",
    ),
    (MODERN.replace("GPU1\tNV4\t X ", "GPU1\tNV4\tPIX"), "line 3: GPU1 to GPU1 is PIX"),
    (MODERN.replace("NODE", "X"), "line 5: GPU3 to GPU2 is X"),
    (
        MODERN.replace("GPU2\t", "GPU1\t", 2).replace("GPU1\tGPU1\tGPU3", "GPU1\tGPU2\tGPU3"),
        "row GPU1 appears twice",
    ),
    (MODERN.replace("GPU1\tGPU2", "GPU1\tGPU1"), "line 1: column GPU1 appears twice"),
    ("\n".join(MODERN.split("\n")[:4]), "row GPU3 is missing, column GPU3 is in line 1"),
    (MODERN.replace("\nGPU3\t", "\nGPU9\t"), "line 5: 'GPU9' is not a column of the header"),
    (BLANKS + "GPU3 X SOC SOC\n", "line 6: 'GPU3' is not a column of the header"),
    (MODERN.replace("PIX", "NV2"), "line 6: NIC0 reaches a GPU by NVLink"),
    (MODERN.replace("NV4", "NV19"), "line 2: GPU0 to GPU1 is NV19, more than the 18 NVLinks of a GPU"),
    (MODERN.replace("N/A", "N/A 7", 1), "line 2: 4 affinities, the header has 3"),
    ("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n", "line 2: unknown label 'OK' in column GPU1"),
]


@pytest.mark.parametrize(
    ("text", "message"), BAD_TEXTS, ids=[f"{i}: {m}" for i, (_, m) in enumerate(BAD_TEXTS)]
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        parse(text)


def test_bad_arguments_are_refused_by_name() -> None:
    with pytest.raises(tp.TopologyError, match="gpu_model = 'K80' is not known; known: P100, V100"):
        parse(MODERN, "K80")
    with pytest.raises(tp.TopologyError, match="gpu_model = 7 is not"):
        parse(MODERN, 7)  # type: ignore[arg-type]
    with pytest.raises(tp.TopologyError, match="text = None is not a string"):
        parse(None)  # type: ignore[arg-type]
    with pytest.raises(tp.TopologyError, match="GPU1 is NV12, more than the 4 NVLinks"):
        parse(SWITCHED, "P100")
    with pytest.raises(tp.TopologyError, match="pcie_gb_per_s = nan"):
        parse(MODERN, pcie_gb_per_s=float("nan"))
    with pytest.raises(tp.TopologyError, match="pcie_gb_per_s = 0 is not above 0"):
        parse(MODERN, pcie_gb_per_s=0)


@given(st.text() | st.text(st.sampled_from("GPU0123 NVSYXOC-,\t\n\r:\x1b[4m")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, "\tGPU0\tGPU1\n" + text):
        try:
            parse(candidate)
        except tp.TopologyError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not


@given(st.sampled_from([MODERN, BLANKS, SWITCHED]), st.data())
def test_mutated_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "\t", "\n", " X ", "NV99", "GPU1", "²", "\r"]))
            + text[at + cut :]
        )
    try:
        assert parse(text).num_gpus > 0
    except tp.TopologyError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not


SAMPLES = [
    *("2gpu-nv2-02", "2gpu-phb-03", "4gpu-soc-mlx4-01", "4xK80-node-07", "6gpu-soc-08", "8xA100-compact-04"),
    *("8xH100-06", "8xH100-compact-05", "adroit-4xV100pcie-49", "della-4xA100-51", "dgx1v100-ib-09"),
    *("litgpt-2x3090-48", "litgpt-4gpu-nv12-44", "litgpt-4gpu-nv1pairs-45", "litgpt-4gpu-phb-46"),
    *("litgpt-8xA100-10nic-47", "traverse-ac922-50"),
]
KIND_OF = {label: kind.name for label, kind in PATHS.items()} | {"SOC": "SYSTEM"}


def expected_of(index: str) -> tuple[int, int, Counter[tuple[str, int]]]:
    """Reads a right parse such as "8 GPUs, 4 NIC columns; GPU pairs: NV1x8, NV2x8, SYSx12"."""
    gpus, nics, pairs = re.search(r"(\d+) GPUs, (\d+) NIC columns; GPU pairs: ([\w, ]+)", index).groups()  # type: ignore[union-attr]
    counted: Counter[tuple[str, int]] = Counter()
    for label, count in re.findall(r"(\w+)x(\d+)", pairs):
        key = ("NVLINK", int(label[2:])) if label.startswith("NV") else (KIND_OF[label], 1)
        counted[key] += int(count)
    return int(gpus), int(nics), counted


@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_of_a_real_machine(sample: str, shared: Path) -> None:
    index = (shared / "data/topo/INDEX.md").read_text("utf-8")
    line = next(line for line in index.split("\n") if line.startswith(f"| topom-{sample}.txt"))
    text = (shared / f"data/topo/topom-{sample}.txt").read_text("utf-8")
    topology = parse(text)
    found = Counter(
        {(kind.name.replace("NVSWITCH", "NVLINK"), n): count for (kind, n), count in links(topology).items()}
    )
    assert (topology.num_gpus, len(topology.nics), found) == expected_of(line)


def test_samples_are_all_there(shared: Path) -> None:
    assert {path.stem for path in (shared / "data/topo").glob("topom-*")} == {
        f"topom-{name}" for name in SAMPLES
    }


def test_no_file_of_any_kind_crashes_the_parser(shared: Path) -> None:
    for path in sorted((shared / "data/topo").iterdir()):
        text = path.read_text("latin-1")
        if not path.name.startswith("topom-"):
            with pytest.raises(tp.TopologyError):
                parse(text)


def test_sample_without_a_model_is_placed_as_the_built_in_machine(shared: Path) -> None:
    sample = parse((shared / "data/topo/topom-dgx1v100-ib-09.txt").read_text("utf-8"))
    job = tp.JobGraph.ring(3).with_(bandwidth_sensitive=True)
    placements = [
        tp.policies.get("mapa-preserve").place(job, tp.Cluster(topology))
        for topology in (sample, tp.machines.get("dgx1-v100"))
    ]
    assert placements[0].gpus == placements[1].gpus
    for score in ("aggregated_bandwidth", "bottleneck_bandwidth"):
        assert placements[0].scores[score] == placements[1].scores[score]


def test_sample_of_a_dgx1_is_the_built_in_machine(shared: Path) -> None:
    sample = parse((shared / "data/topo/topom-dgx1v100-ib-09.txt").read_text("utf-8"), "V100")
    built_in = tp.machines.get("dgx1-v100")
    nvlinks = [(u, v, link) for u, v, link in sample.links if link.kind is LinkKind.NVLINK2]
    assert tuple(nvlinks) == built_in.links
    assert [gpu.socket for gpu in sample.gpus] == [gpu.socket for gpu in built_in.gpus]


def test_recognised() -> None:
    assert all(map(topo_matrix.recognised, (MODERN, BLANKS, SWITCHED, "\tGPU0\nGPU0\t X \n")))
    assert not any(
        map(topo_matrix.recognised, ("", "GPU0 GPU1\n", "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n"))
    )


PCI_ONLY = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPHB\t0-15\t0
GPU1\tPHB\t X \t0-15\t0

Legend:

  X    = Self
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PIX  = Connection traversing at most a single PCIe bridge
"""


def test_the_pci_only_matrix_hides_nvlinks() -> None:
    with pytest.raises(
        tp.TopologyError, match=r"line 5: the legend has no NV#.*topo -mp.*assume_no_nvlink=True"
    ):
        parse(PCI_ONLY)
    topology = parse(PCI_ONLY, assume_no_nvlink=True)
    assert topology.link(0, 1) == tp.Link(LinkKind.HOST, 1, 10.0)
    assert topology == parse(PCI_ONLY + "  NV#  = Connection traversing a bonded set of # NVLinks\n")
    assert topology == parse(PCI_ONLY + "  NV1 = Connected via NVLink with 1 hop\n")
    no_legend = parse(PCI_ONLY.split("Legend")[0])
    assert "no legend" in no_legend.notes[-1]
    assert no_legend.links == topology.links


def test_drivers_older_than_nvlink_have_none_to_hide() -> None:
    old = "  PHB = Path traverses a PCIe host bridge"
    topology = parse(PCI_ONLY.split("  PHB ")[0].replace("0-15\t0", "0-15") + old)
    assert topology.link(0, 1).kind is LinkKind.HOST
    assert topology.notes == ("The speed of PCIe is not given: 10 (PHB) GB/s is assumed.",)


def test_an_underlined_header_may_have_lost_its_escape_characters() -> None:
    text = "[4m\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity[0m\nGPU0\t X \tNV4\t0-7\t0\nGPU1\tNV4\t X \t0-7\t0\n"
    assert topo_matrix.recognised(text)
    assert parse(text) == parse(text.replace("[", "\x1b["))


def test_a_container_without_cpus_near_a_gpu_has_an_empty_cell() -> None:
    text = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV18\t44-51,148-155\t0\t\tN/A\n"
        "GPU1\tNV18\t X \t\t1\t\tN/A\n"
    )
    for topology in (parse(text), parse(text.expandtabs())):
        assert [(gpu.numa_node, gpu.cpus) for gpu in topology.gpus] == [(0, "44-51,148-155"), (1, None)]
        assert [gpu.socket for gpu in topology.gpus] == [0, 1]


LOST = "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n"


def test_a_lost_gpu_is_said() -> None:
    hole = "\tGPU0\tGPU2\tCPU Affinity\nGPU0\tX\tPHB\t0-7\nGPU2\tPHB\tX\t0-7\n"
    gap = "A GPU is missing: GPU1, though GPU2 is there; its tool or the driver has lost it."
    said = "A GPU is missing: 0000:41:00.0, of which the tool says 'Unknown Error'."
    whole = hole.replace("GPU2", "GPU1")
    for text, expected in ((hole, [gap]), (LOST + hole, [said, gap]), (whole + LOST, [said]), (whole, [])):
        topology = parse(text)
        missing = [one for one in compare.check(topology) if one.why.startswith("A GPU is missing")]
        assert [one.why for one in missing] == expected
        assert all(one.serious for one in missing)
        assert not any("nothing is read" in note for note in topology.notes)
    changed = compare.diff(parse(whole), parse(LOST + whole))
    assert [one.what for one in changed] == ["notes"]


def test_a_lost_gpu_is_said_in_a_list() -> None:
    text = "GPU 0: Tesla T4 (UUID: GPU-a)\n" + LOST + "GPU 2: Tesla T4 (UUID: GPU-b)\n"
    notes = [note for note in tp.discovery.read(text).notes if note.startswith("A GPU is missing")]
    assert len(notes) == 2


def test_what_is_assumed_is_noted() -> None:
    assert parse(MODERN).notes == (
        "The GPU model is not given: 14.0625 GB/s per NVLink is assumed, as of A6000, A40, A5000 or RTX 3090, "
        "by pairs with 4 NVLinks.",
        "The speed of PCIe is not given: 8 (NODE) and 6 (SYS) GB/s are assumed.",
    )
    assert parse(SWITCHED, "A100").notes == ()


GLUED = [
    ("NV12\tNV12", "NV12NV12"),
    ("GPU0\tGPU1\tGPU2", "GPU0GPU1GPU2"),
    ("GPU1\tNV12", "GPU1NV12"),
    ("GPU0\tX", "GPU0X"),
    ("X\tNV12", "XNV12"),
    ("NV12\tX", "NV12X"),
]


@pytest.mark.parametrize(("apart", "glued"), GLUED)
def test_cells_that_touch_are_cut(apart: str, glued: str) -> None:
    assert apart in SWITCHED
    assert parse(SWITCHED.replace(apart, glued)) == parse(SWITCHED)


def test_labels_that_touch_an_affinity_are_cut() -> None:
    def text(cell: str) -> str:
        return f"GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X {cell} 0\nGPU1 {cell[:-4]} X 24-47 1\n"

    for label in ("SYS", "NV4", "NV18", "PHB", "SOC"):
        topology = parse(text(f"{label}0-23"))
        assert [gpu.cpus for gpu in topology.gpus] == ["0-23", "24-47"]
    with pytest.raises(tp.TopologyError, match="line 2: 'NV120-23' can be a label and an affinity in 2 ways"):
        parse(text("NV120-23"))
    with pytest.raises(tp.TopologyError, match="line 2: unknown label 'SYSx0-23'"):
        parse("GPU0 GPU1 CPU Affinity\nGPU0 X SYSx0-23\nGPU1 SYS X 0-3\n")


def test_rows_of_adapters_may_be_missing() -> None:
    text = "\n".join(line for line in MODERN.split("\n") if not line.startswith("NIC"))
    assert parse(text).nics == parse(MODERN).nics
    assert parse(text).notes[-1] == "Network adapters with a column and no row: NIC0, NIC1."
    with pytest.raises(tp.TopologyError, match="line 2: NIC0 reaches a GPU by NVLink"):
        parse(text.replace("PIX", "NV2"))


def test_what_stands_around_the_matrix_is_ignored() -> None:
    rows = "\n".join(MODERN.split("\n")[:7])
    around = f"user@box:~$ nvidia-smi topo -m\n{rows}\nuser@box:~$ exit\nGPU7 is broken\n"
    assert parse(around).links == parse(MODERN).links


def test_odd_numbers_of_gpus() -> None:
    seven = [f"GPU{i}" for i in range(7)]
    cells = [["X" if i == j else "NV18" for j in range(7)] for i in range(7)]
    text = "\n".join([" ".join(seven), *(f"GPU{i} {' '.join(row)}" for i, row in enumerate(cells))])
    assert links(parse(text, "H100")) == {(LinkKind.NVSWITCH, 18): 21}
    assert links(parse(text)) == {(LinkKind.NVSWITCH, 18): 21}


def test_affinities_are_kept() -> None:
    gpus = parse(MODERN).gpus
    assert [(gpu.numa_node, gpu.cpus) for gpu in gpus][1:3] == [(0, "0-15,32-47"), (1, "16-31,48-63")]
    odd = MODERN.replace("16-31,48-63\t1", "31-16\t0-1")
    assert [(gpu.numa_node, gpu.cpus, gpu.socket) for gpu in parse(odd).gpus][3] == (None, None, 1)
    assert parse(MODERN.encode()) == parse(MODERN)


def test_models_without_nvlink_are_taken_where_there_is_none() -> None:
    assert parse(BLANKS, "NVIDIA L40S").gpus[0].model == "NVIDIA L40S"
    with pytest.raises(tp.TopologyError, match="gpu_model = 'NVIDIA L40S' is not known"):
        parse(MODERN, "NVIDIA L40S")


@pytest.mark.parametrize(
    "text_of",
    [
        lambda size: " ".join(f"GPU{i}" for i in range(size // 10)),
        lambda size: "GPU0 " + " ".join(f"nic{i}" for i in range(size // 10)),
        lambda size: "GPU0 GPU1\nGPU0 " + "X" * size,
        lambda size: "GPU0 GPU1\nGPU0 " + "XNV1 " * (size // 5),
        lambda size: "GPU0 GPU1\nGPU0 NV" + "1" * size + "-",
        lambda size: "GPU0 GPU1\n" + "\n" * size,
    ],
    ids=["gpus", "adapters", "one word", "many words", "digits", "blank lines"],
)
def test_large_texts_are_refused_in_linear_time(text_of: Callable[[int], str]) -> None:
    def refuse(size: int) -> None:
        with pytest.raises(tp.TopologyError):
            parse(text_of(size))

    assert_linear(refuse, 1_000_000)


def test_a_text_that_ends_inside_the_row_of_an_adapter_keeps_the_rest() -> None:
    text = "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tPIX\tPIX\tSYS\nGPU1\tPIX\t X \tSYS\tPIX\n"
    whole = text + "NIC0\tPIX\tSYS\t X \tSYS\nNIC1\tSYS\tPIX\tSYS\t X \n"
    topology = topo_matrix.parse(whole)
    for cut in range(len(whole) - 3, len(whole) - 16, -1):
        cut_off = topo_matrix.parse(whole[:cut])
        assert (cut_off.links, cut_off.nics) == (topology.links, topology.nics)
        assert "Line 5: the text ends inside the row of NIC1, whose cells are left out." in cut_off.notes
    with pytest.raises(tp.TopologyError, match="line 4: 3 columns, the header has 4"):
        topo_matrix.parse(whole.replace("PIX\tSYS\t X \tSYS", "PIX\tSYS\t X"))


def test_a_command_before_the_header_hides_no_column() -> None:
    found = topo_matrix.parse(
        "$ nvidia-smi topo -m   GPU0  GPU1  CPU Affinity\nGPU0  X  PHB  0-3\nGPU1  PHB  X  0-3\n"
    )
    assert found.link(0, 1).kind is LinkKind.HOST
    assert not any("no header" in note for note in found.notes)


PAIR = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-31\t0\nGPU1\tPHB\t X \t0-31\t0\n"


def test_lines_above_the_matrix_are_noted() -> None:
    found = parse(f"PCIe: link width degraded x4 on GPU 1\n$ nvidia-smi topo -m\n{PAIR}")
    note = "Lines from which nothing is read: line 1: 'PCIe: link width degraded x4 on GPU 1'."
    assert note in found.notes


def test_a_command_that_hides_nvlinks_is_noted() -> None:
    notes = parse(f"user@host:~$ nvidia-smi topo -mp\n{PAIR}").notes
    assert any(note.startswith("`nvidia-smi topo -mp` hides NVLinks") for note in notes)


def test_numbers_may_begin_above_0() -> None:
    found = parse(PAIR.replace("GPU1", "GPU5").replace("GPU0", "GPU4"))
    assert [gpu.name for gpu in found.gpus] == ["GPU4", "GPU5"]
    assert "The numbers of GPUs begin with GPU4; those before it are not in the text." in found.notes
    assert not any(one.serious for one in compare.check(found))
