from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace.discovery.hwloc import lstopo_console


@pytest.fixture
def power9(repository: Path) -> str:
    """`lstopo-no-graphics -v`: a GPU that only its memory names, and one with a vendor, a driver and a bridge."""
    return (repository / "tests/data/lstopo-power9.txt").read_text("utf-8")


@pytest.fixture
def short(repository: Path) -> str:
    """`lstopo-no-graphics`: two GPUs below one switch, the chip of the board's console, an adapter."""
    return (repository / "tests/data/lstopo-short.txt").read_text("utf-8")


def test_gpus_and_sockets_of_the_long_form(power9: str) -> None:
    topology = lstopo_console.parse(power9, pcie_gb_per_s=10.0)
    assert topology.gpus == (
        tp.Gpu(0, "GPU0", socket=0, memory_gb=16.10612736, bus_id="0004:05:00.0", numa_node=0, cpus="0-1,4"),
        tp.Gpu(1, "GPU1", "Tesla V100-SXM2-16GB", socket=1, memory_gb=16.0, uuid="GPU-1", bus_id="0035:03:00.0",
               numa_node=8, cpus="88", maker="NVIDIA"),
    )  # fmt: skip
    assert [part.name for part in topology.components] == ["socket0", "socket1", "NUMA0", "NUMA8"]
    assert [link.gb_per_s for _, _, link in topology.component_links] == [10.0, 15.75, 32.0]
    assert topology.notes == (
        "The speed of 1 PCIe links is not given: 10 GB/s is assumed.",
        "Neither NVLinkBandwidth nor XGMIBandwidth is there: such links, if any, are not given.",
    )


def test_display_devices_of_a_system_without_vendors_are_gpus_with_a_note(power9: str) -> None:
    lines = [line for line in power9.splitlines() if "GPUMemory" not in line]
    text = "\n".join(lines).replace("3 NUMANode", "2 NUMANode")
    topology = lstopo_console.parse(text)
    assert topology.num_gpus == 2
    assert "1 display devices of no known vendor are taken as GPUs." in topology.notes


def test_the_short_form(short: str) -> None:
    topology = lstopo_console.parse(short)
    assert [(gpu.bus_id, gpu.cpus) for gpu in topology.gpus] == [
        ("0000:03:00.0", "0,2"),
        ("0000:04:00.0", "0,2"),
    ]
    assert topology.link(0, 1) == tp.Link(tp.LinkKind.PCIE, 1, 12.0)
    assert [(nic.name, nic.paths) for nic in topology.nics] == [("mlx5_0", ("PHB", "PHB"))]
    assert "1 display devices of no known vendor are taken as GPUs." in topology.notes


def test_devices_that_are_several_things(short: str) -> None:
    newer = short.replace("CoProc(CUDA)", "OSDev[GPU,Co-Processor](CUDA) L#0")
    newer = newer.replace("OpenFabrics", "OSDev[OpenFabrics]").replace("Net ", "OSDev[Network] ")
    topology = lstopo_console.parse(newer)
    assert topology == lstopo_console.parse(short)
    engine = short.replace("03:00.0 (3D)", "03:00.0").replace(
        "CoProc(CUDA)", "OSDev[Co-Processor](VectorEngine)"
    )
    assert lstopo_console.parse(engine).num_gpus == 2


def test_a_driver_of_gpus_alone_makes_a_display_device_one(short: str) -> None:
    amd = short.replace("04:00.0 (3D)", '04:00.0 (Display)\n              GPU(RSMI) "rsmi0"')
    assert lstopo_console.parse(amd).num_gpus == 2
    assert lstopo_console.parse(amd.replace("GPU(RSMI)", "GPU")).num_gpus == 1


def test_devices_in_one_line(short: str) -> None:
    cards = "          3 x { PCI L#3-5 (busid=07:00.1-3 id=15b3:1018 class=0200(Ethernet)) }\n"
    assert lstopo_console.parse(
        short + cards + "Special depth -5:  7 PCIDev (type #17)\n"
    ) == lstopo_console.parse(short)
    with pytest.raises(
        tp.TopologyError,
        match=r"^line 22: 3 devices in one line; print one per line with lstopo --no-collapse",
    ):
        lstopo_console.parse(short + cards.replace("0200(Ethernet)", "0302(3D)"))


def test_a_console_chip_alone_is_no_accelerator(short: str) -> None:
    text = "\n".join(line for line in short.splitlines() if "3D" not in line and "CoProc" not in line)
    assert refusal(lstopo_console.parse, text) == (
        "no accelerator: none of the 2 PCI devices is a GPU or a co-processor; display devices of the board: "
        "0000:05:03.0"
    )


@pytest.mark.parametrize(
    "form", ["06:00.0 (ProcessingAccelerator)", "(busid=0000:06:00.0 class=1200(ProcessingAccelerator))"]
)
def test_a_processing_accelerator_of_an_unknown_maker_is_noted(short: str, form: str) -> None:
    topology = lstopo_console.parse(short.replace("PCI 05:03.0 (VGA)", f"PCI {form}"))
    assert topology.num_gpus == 2
    note = "Devices of the PCI classes of accelerators, which no driver offers, are left out: 1 x class 1200."
    assert note in topology.notes


def test_a_matrix_in_the_text_is_pointed_out(power9: str) -> None:
    topology = lstopo_console.parse(power9 + "Relative bandwidth matrix (name NVLinkBandwidth kind 25) ...\n")
    assert (
        topology.notes[0] == "The matrix NVLinkBandwidth of the text is not read, but that of hwloc's XML is."
    )


def test_recognised(power9: str, short: str) -> None:
    assert lstopo_console.recognised(power9)
    assert lstopo_console.recognised("some warning\n" + short)
    assert not lstopo_console.recognised("Machinery (5)")
