from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.kubernetes.texts import hived


@pytest.fixture(scope="module")
def config(repository: Path) -> str:
    return (repository / "tests/data/hived-config.yaml").read_text("utf-8")


def test_cell_types(config: str) -> None:
    assert hived.recognised(config)
    types = hived.cell_types(config)
    assert list(types) == ["BOX-SWITCH", "BOX-SOCKET", "BOX", "2-BOX", "T4-NODE"]
    assert types["BOX"] == hived.CellType("BOX", "BOX-SOCKET", 2, True, 5)


def test_physical_cells(config: str) -> None:
    topology = hived.parse(config, socket_cells=["BOX-SOCKET"])
    assert topology.machine_names == ("n0", "n1", "n2")
    by_machine = {
        machine: [
            (topology.gpus[gpu].name, topology.gpus[gpu].model, topology.gpus[gpu].socket) for gpu in gpus
        ]
        for machine, gpus in topology.gpus_of.items()
    }
    assert by_machine["n0"] == [(f"GPU{i}", "V100", i // 2) for i in range(4)]
    assert by_machine["n1"] == [
        ("GPU0", "V100", 1),
        ("GPU1", "V100", 1),
        ("GPU2", "V100", 0),
        ("GPU3", "V100", 0),
    ]
    assert by_machine["n2"][4:] == [("GPU8", "T4", None), ("GPU9", "T4", None)]
    assert topology.fabric is not None
    (level,) = topology.fabric.levels
    assert level.name == "cell1"
    assert level.domains == ("2-BOX/0", "2-BOX/0", None)
    assert topology.link(0, 1).kind is LinkKind.UNKNOWN


def test_nodes_that_the_caller_knows(config: str) -> None:
    machine = tp.Topology.from_links(4, [(0, 1, 50.0, "nvlink2")])
    topology = hived.parse(config, template={"BOX": machine})
    assert topology.link(0, 1).kind is LinkKind.NVLINK2
    assert topology.link(8, 9).kind is LinkKind.UNKNOWN  # a node with GPUs of two models
    with pytest.raises(tp.TopologyError, match=r"template\['BOX'\] has 2 GPUs, but node 'n0' has 4"):
        hived.parse(config, template={"BOX": tp.Topology.from_links(2, [])})
    with pytest.raises(tp.TopologyError, match="socket_cells: 'X' is not a cell type"):
        hived.parse(config, socket_cells=["X"])


HEAD = "physicalCluster:\n  cellTypes:\n    B: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "there is no physicalCluster"),
        ("physicalCluster: {}", "there are no cellTypes"),
        (HEAD, "there are no physicalCells"),
        ("cellTypes: {B: {childCellNumber: 2}}", "line 1: cell type 'B' has no childCellType"),
        ("cellTypes: {B: {childCellType: G}}", "line 1: cell type 'B' has no childCellNumber"),
        (
            "cellTypes: {B: {childCellType: G, childCellNumber: 0}}",
            "childCellNumber = '0' is not a number in 1..",
        ),
        ("cellTypes: {B: {childCellType: B, childCellNumber: 1}}", "line 1: cell type 'B' is below itself"),
        (
            HEAD + "    C: {childCellType: B, childCellNumber: 2, isNodeLevel: true}\n",
            "line 4: cell type 'C' has 2 types of nodes in it",
        ),
        (HEAD + "  physicalCells: [{cellType: X}]", "line 4: cellType = 'X' is not a cell type"),
        (HEAD + "  physicalCells: [{cellType: B}]", "line 4: a 'B' without cellAddress"),
        (
            HEAD + "  physicalCells: [{cellType: B, cellAddress: n, cellChildren: [{}]}]",
            "line 4: 1 cellChildren, and a 'B' has 2",
        ),
        (
            HEAD + "  physicalCells: [{cellType: B, cellAddress: n}, {cellType: B, cellAddress: n}]",
            "GPU 0 of node 'n' appears twice",
        ),
        (
            HEAD + "  physicalCells: [{cellType: B, cellAddress: n, cellChildren: [{cellAddress: x}, {}]}]",
            "line 4: cellAddress = 'x' is not a number",
        ),
        (
            "cellTypes: {B: {childCellType: G, childCellNumber: 2}}\nphysicalCells: [{cellType: B}]",
            "line 2: no type above GPU 'G' has isNodeLevel",
        ),
        (
            HEAD.replace("2,", "5000,") + "  physicalCells: [{cellType: B, cellAddress: n}]",
            "more GPUs than 256",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(hived.parse, text)


def test_nodes_alone_have_no_levels() -> None:
    topology = hived.parse(HEAD + "  physicalCells: [{cellType: B, cellAddress: n}]")
    assert topology.num_gpus == 2
    assert topology.fabric is not None
    assert topology.fabric.levels == ()


def test_cells_without_nodes_in_the_text_stay_small() -> None:
    types = "".join(
        f"    {name}: {{childCellType: {child}, childCellNumber: 1000000}}\n"
        for name, child in (("C1", "B"), ("C2", "C1"))
    )
    with pytest.raises(tp.TopologyError, match="without cellAddress"):
        hived.parse(HEAD + types + "  physicalCells: [{cellType: C2}]")
