"""Large and hostile texts: each is refused with a reason, in time that grows with the text and no faster."""

from __future__ import annotations

from types import ModuleType

import pytest

import topoplace as tp
from growth import assert_linear
from topoplace.discovery.amd import kfd, smi_tables
from topoplace.discovery.hwloc import hwloc_xml, lstopo_console
from topoplace.discovery.linux import numactl
from topoplace.discovery.measurements import rocm_bandwidth_test
from topoplace_lab.research import hiest

PARSERS = (smi_tables, rocm_bandwidth_test, numactl, hwloc_xml, lstopo_console, hiest)
SIZE = 1_000_000


def header(n: int) -> str:
    return " ".join(f"GPU{i}" for i in range(n))


@pytest.mark.parametrize("parser", PARSERS, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    "start",
    [
        "=",
        "= a",
        "Device: 1,",
        "Device: 1, a,",
        "D/D",
        "GPU[0] : (Topology) Numa Node:",
        "node 0 cpus:",
        "node distances:\nnode",
        "Machine (P#0)\n  Package",
        "<topology",
        '{"machines":',
    ],
)
def test_a_long_line_of_blanks_takes_no_longer_than_it_must(parser: ModuleType, start: str) -> None:
    def refuse(size: int) -> None:
        with pytest.raises(tp.TopologyError):
            parser.parse(f"{start}{' ' * size}x")

    assert_linear(refuse, SIZE)


@pytest.mark.parametrize(
    ("parser", "text", "message"),
    [
        (smi_tables, f"= Bandwidth =\n{header(300)}\n", "line 2: a header of more than 256 columns"),
        (
            rocm_bandwidth_test,
            f"Unidirectional copy peak bandwidth GB/s\nD/D {header(300)}\n",
            "line 2: a header of 257 columns",
        ),
        (
            rocm_bandwidth_test,
            "Unidirectional copy peak bandwidth GB/s\nD/D \n",
            "line 2: a header of 0 columns",
        ),
        (numactl, "".join(f"node {i} cpus:\n" for i in range(1025)), "line 1025: more than 1024 nodes"),
        (numactl, "node distances:\nnode" + " 1" * 2000, "line 2: more than 1024 nodes"),
        (numactl, "node distances:\nnode 1234567", "line 2: a number has more than 6 digits"),
        (
            lstopo_console,
            "Machine (P#0)\n"
            + "".join(f"  PCI {i:02x}:{j:02x}.0 (3D)\n" for i in range(16) for j in range(17)),
            "272 accelerators are more than 256",
        ),
        (
            lstopo_console,
            "Machine (P#0)\n" + "".join("  " * i + "Group\n" for i in range(1, 70)),
            "an object is indented by 128 blanks",
        ),
        (hiest, "[" * 100_000, "not JSON"),
    ],
)
def test_more_than_any_machine_has_is_refused(parser: ModuleType, text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        parser.parse(text)


def test_many_nodes_of_a_tree_are_refused() -> None:
    files = {f"nodes/{i}/properties": "simd_count 1\n" for i in range(4097)}
    with pytest.raises(tp.TopologyError, match="'nodes/4096/properties': more than 4096 nodes"):
        kfd.parse(files)
