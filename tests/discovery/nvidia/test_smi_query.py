"""`nvidia-smi -q` in text and XML: GPUs, their PCIe links, slices, fabric, and what is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from topoplace import TopologyError, discovery
from topoplace.discovery.nvidia import smi_query
from topoplace.topology import compare

DATA = Path(__file__).parents[2] / "data"
LOG = (DATA / "smiquery-2gpu.txt").read_text("utf-8")
XML = (DATA / "smiquery-mig.xml").read_text("utf-8")
CLIQUE = "00000000-0000-0000-0000-000000000000.0"


def in_use(text: str) -> list[int | None]:
    return [one.number for one in smi_query.in_use(text) if one.taken]


def test_gpus_of_one_fabric_meet_in_its_switches() -> None:
    found = tp.read(LOG)
    first = found.gpus[0]
    assert (first.name, first.model, first.bus_id) == ("GPU0", "H100", "00000000:18:00.0")
    assert first.uuid == "GPU-00000000-0000-4000-8000-000000000001"
    assert first.memory_gb == pytest.approx(85.52, abs=0.01)
    assert (found.link(0, 1).kind.name, found.link(0, 1).gb_per_s) == ("NVSWITCH", 450.0)
    assert f"In the NVLink domain {CLIQUE} (ClusterUUID and CliqueId): GPU0, GPU1." in found.notes


@pytest.mark.parametrize("state", ["In Progress", "Completed"])
def test_a_fabric_that_was_not_joined_is_noted(state: str) -> None:
    text = LOG.replace(": Completed", f": {state}").replace(": Success", ": Initialization failed")
    found = tp.read(text)
    assert (found.link(0, 1).kind.name, found.link(0, 1).gb_per_s) == (
        "UNKNOWN",
        31.5,
    )  # gen 5 x8 is the slower one
    assert (
        f"GPU1 has not joined its NVLink fabric: state {state}, status Initialization failed." in found.notes
    )


def test_slices_in_xml() -> None:
    found = tp.read(XML)
    (gpu,) = found.gpus
    assert (gpu.name, gpu.parent, gpu.fraction, gpu.healthy) == ("GPU0", None, 1.0, False)
    assert gpu.uuid == "GPU-00000000-0000-4000-8000-000000000001"
    assert any(
        note.startswith("GPU0 is cut into MIG slices")
        and "MIG0 (3g, 20096 MiB), MIG1 (1g, 4864 MiB)" in note
        and "`nvidia-smi -L`" in note
        for note in found.notes
    )
    assert "2 GPUs are attached, and 1 described: the others are missing here." in found.notes


def test_which_are_in_use() -> None:
    assert in_use(LOG) == [0]
    assert discovery.busy_gpus(XML, tp.read(XML)) == (0,)
    assert in_use(LOG.replace(": C\n", ": G\n")) == []
    assert in_use(LOG.replace(": 0 MiB", ": 70000 MiB")) == [0, 1]


def test_the_first_of_several_logs_is_read() -> None:
    found = tp.read(LOG + LOG)
    assert found.num_gpus == 2
    assert "The text has 2 logs; the first is read." in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOG[:120], "the log describes no GPU"),
        (LOG.replace("GPU 00000000:2A", "GPU 00000000:18"), "GPU 00000000:18:00.0 appears twice"),
        (LOG.replace("    Fabric\n", "    ...\n"), "marks omitted text"),
        (XML.replace("</gpu>", ""), "line"),
        ("<nvidia_smi_log></nvidia_smi_log>", "the log describes no GPU"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        smi_query.parse(text)


SICK = """\
==============NVSMI LOG==============
Attached GPUs                   : 1
GPU 00000000:18:00.0
    Product Name                : NVIDIA H100 80GB HBM3
    Compute Mode                : Default
    MIG Mode
        Pending                 : Disabled
    PCI
        GPU Link Info
            Link Width
                Max             : 16x
                Current         : 16x
    Remapped Rows
        Pending                 : No
        Remapping Failure Occurred : No
    GPU Recovery Action         : None
    Fabric
        State                   : Completed
        Status                  : Success
        Health
            Bandwidth           : Full
            Route Recovery in progress : False
            Route Unhealthy     : False
            Access Timeout Recovery : False
"""


def test_a_sound_gpu_has_no_note() -> None:
    found = tp.read(SICK)
    assert found.gpus[0].healthy
    assert not [note for note in found.notes if note.startswith("GPU0")]


@pytest.mark.parametrize(
    ("old", "new", "healthy", "note"),
    [
        ("Occurred : No", "Occurred : Yes", False, "could not be remapped"),
        ("Pending                 : No", "Pending : Yes", True, "wait for a reset"),
        ("Unhealthy     : False", "Unhealthy : True", False, "route in the NVLink fabric is unhealthy"),
        ("Timeout Recovery : False", "Timeout Recovery : True", False, "timeout"),
        ("in progress : False", "in progress : True", True, "is being recovered"),
        (": Full", ": Degraded", True, "bandwidth of its NVLink fabric is 'Degraded'"),
        ("Action         : None", "Action : Drain and Reset", False, "Drain and Reset"),
        ("Action         : None", "Action : Drain P2P", True, "Drain P2P"),
        ("Mode                : Default", "Mode : Prohibited", False, "Prohibited"),
        ("Mode                : Default", "Mode : Exclusive_Process", True, "Exclusive_Process"),
        ("Current         : 16x", "Current : 4x", True, "its PCIe link has 4 of 16 lanes"),
    ],
)
def test_health(old: str, new: str, healthy: bool, note: str) -> None:
    assert old in SICK
    found = tp.read(SICK.replace(old, new))
    assert found.gpus[0].healthy is healthy
    (said,) = [one for one in found.notes if one.startswith("GPU0")]
    assert note in said
    assert any(said == finding.why for finding in compare.check(found))


def test_health_in_xml() -> None:
    rows = "<remapped_row_pending>{}</remapped_row_pending><remapped_row_failure>{}</remapped_row_failure>"
    text = (
        "<nvidia_smi_log><gpu id='00000000:18:00.0'><remapped_rows>{}</remapped_rows></gpu></nvidia_smi_log>"
    )
    broken = smi_query.parse(text.format(rows.format("No", "Yes")))
    waiting = smi_query.parse(text.format(rows.format("Yes", "No")))
    assert (broken.gpus[0].healthy, waiting.gpus[0].healthy) == (False, True)
    assert "GPU0: rows of its memory wait for a reset to be remapped." in waiting.notes


HEALTH = """\
    ECC Errors
        Volatile
            SRAM Correctable                  : 9
            SRAM Uncorrectable                : 1
            DRAM Uncorrectable                : 2
        Aggregate
            DRAM Uncorrectable                : 40
    Clocks Event Reasons
        HW Slowdown                           : Active
            HW Thermal Slowdown               : Active
            HW Power Brake Slowdown           : Not Active
        SW Thermal Slowdown                   : Active
"""
SLICED = """\
==============NVSMI LOG==============

Attached GPUs                             : 1
GPU 00000000:18:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    MIG Device
        Index                             : 0
        Device Attributes
            Shared
                Multiprocessor count      : 42
        ECC Errors
            Volatile
                SRAM Uncorrectable        : 0
        {shared}FB Memory Usage
            Total                         : 19968 MiB
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 5
    FB Memory Usage
        Total                             : 40960 MiB
"""


def test_uncorrectable_errors_and_slowdowns_are_noted() -> None:
    log = f"==============NVSMI LOG==============\n\nGPU 00000000:18:00.0\n{HEALTH}"
    assert (
        "GPU0: uncorrectable ECC errors since the driver was loaded: 3; it is too hot, and its hardware slows it down; "
        "it is too hot, and its driver slows it down."
    ) in tp.read(log).notes


@pytest.mark.parametrize("before", ["clocks_event_reason", "clocks_throttle_reason"])
def test_slowdowns_in_xml_are_noted(before: str) -> None:
    log = (
        f'<nvidia_smi_log><gpu id="00000000:18:00.0"><{before}s><{before}_hw_power_brake_slowdown>Active'
        f"</{before}_hw_power_brake_slowdown></{before}s></gpu></nvidia_smi_log>"
    )
    assert "GPU0: its power supply slows it down." in tp.read(log).notes


@pytest.mark.parametrize("shared", ["", "Shared "])
def test_what_is_said_of_a_slice_is_not_of_its_gpu(shared: str) -> None:
    found = tp.read(SLICED.format(shared=shared))
    assert found.gpus[0].memory_gb == pytest.approx(42.95, abs=0.01)
    assert any("MIG0 (3g, 19968 MiB)" in note for note in found.notes)
    assert "GPU0: uncorrectable ECC errors since the driver was loaded: 5." in found.notes
