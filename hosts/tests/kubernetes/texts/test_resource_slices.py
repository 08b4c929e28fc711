"""ResourceSlices of the drivers of GPUs and networks as machines."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace import discovery
from topoplace_hosts.kubernetes.texts import resource_slices

SLICES = (Path(__file__).parents[4] / "tests/data/k8sslices-two-drivers.yaml").read_text("utf-8")


def test_devices_of_two_drivers() -> None:
    found = tp.read(SLICES)
    assert (found.num_gpus, found.machine_names) == (3, ("n1",))
    assert [gpu.socket for gpu in found.gpus] == [0, 0, 1]
    first = found.gpus[0]
    assert (first.model, first.capability, first.bus_id) == ("NVIDIA A100-SXM4-40GB", 80, "0000:10:1c.0")
    assert first.memory_gb == pytest.approx(42.95, abs=0.01)
    assert [(nic.name, nic.paths) for nic in found.nics] == [("rdma0", ("SYS", "SYS", "PHB"))]
    assert set(found.notes) >= {
        "Without GPUs, and left out: cpu-only.",
        "Devices that are no whole GPUs, and left out: mig of gpu.nvidia.com.",
    }


def test_older_forms_are_read_alike() -> None:
    text = """kind: ResourceSlice
metadata:
  ownerReferences: [{kind: Node, name: n7}]
spec:
  driver: gpu.amd.com
  pool: {name: n7}
  devices:
  - name: gpu-1
    basic:
      attributes:
        type: {string: amdgpu}
        productName: {string: AMD_Instinct_MI300X}
        numaNode: {int: 1}
      capacity: {memory: 192Gi}
"""
    found = tp.read(text)
    assert (found.machine_names, found.gpus[0].model, found.gpus[0].numa_node) == (
        ("n7",),
        "AMD_Instinct_MI300X",
        1,
    )
    assert found.gpus[0].memory_gb == pytest.approx(206.2, abs=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("40Gi", "lots"), "device 'gpu-0': memory = 'lots' is not an amount such as 40Gi"),
        (("gpu-1", "gpu-0"), "node 'n1': device 'gpu-0' appears twice"),
        (
            ("type: {string: gpu}", "type: {string: mig}"),
            "no slice lists a GPU: those of n1, cpu-only do not",
        ),
        (("name: gpu-0", "name: "), "name of a device"),
    ],
)
def test_refusals(change: tuple[str, str], message: str) -> None:
    assert message in refusal(discovery.read, SLICES.replace(*change))


def test_a_template_replaces_what_is_read() -> None:
    template = tp.Topology.from_links(3, [(0, 1, 50.0)])
    assert resource_slices.parse(SLICES, template=template).bandwidth(0, 1) == 50.0
    with pytest.raises(tp.TopologyError, match="3 GPUs, but its template has 4"):
        resource_slices.parse(SLICES, template=tp.Topology.from_links(4, []))


def test_taints_of_devices_and_missing_slices() -> None:
    text = """kind: ResourceSlice
spec:
  driver: gpu.nvidia.com
  nodeName: n1
  pool: {name: n1, generation: 3, resourceSliceCount: 2}
  devices:
  - name: gpu-0
    attributes: {type: {string: gpu}}
    taints: [{key: gpu.nvidia.com/xid, value: "79", effect: NoExecute}]
  - name: gpu-1
    attributes: {type: {string: gpu}}
    taints: [{key: seen, effect: None}]
"""
    found = tp.read(text)
    assert found.unhealthy_gpus == (0,)
    assert set(found.notes) >= {
        "GPUs with taints, which are marked unhealthy: gpu-0 of n1 (gpu.nvidia.com/xid=79).",
        "Pools with missing slices: gpu.nvidia.com/n1 (1 of 2).",
    }
    assert "Pools" not in " ".join(tp.read(text.replace("Count: 2", "Count: 1")).notes)


ACCELERATORS = """\
kind: ResourceSlice
spec:
  driver: {driver}
  pool: {{name: a}}
  nodeName: a
  devices:
  - name: d0
    attributes: {{model: {{string: x200}}, fabric: {{string: f1}}, numa: {{int: 0}}}}
  - name: d1
    attributes: {{model: {{string: x200}}, fabric: {{string: f1}}, numa: {{int: 1}}}}
"""


def test_a_driver_of_accelerators() -> None:
    found = resource_slices.parse(ACCELERATORS.format(driver="accelerator.example.com"))
    assert [(gpu.model, gpu.socket) for gpu in found.gpus] == [("x200", 0), ("x200", 1)]
    assert "Attributes of GPUs that may be levels of the network, and are left out: fabric." in found.notes


def test_a_refusal_names_the_drivers() -> None:
    why = refusal(resource_slices.parse, ACCELERATORS.format(driver="disks.example.com"))
    assert why == (
        "no slice lists a GPU: those of a do not; their drivers are disks.example.com, and none of these is known for "
        "GPUs"
    )
