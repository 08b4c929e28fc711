"""A placement's environment has the variables of its accelerators."""

from __future__ import annotations

import pytest

import topoplace as tp
from distributions import whole
from topoplace.topology.makers import Maker, maker_of, of_model


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("dgx-h100", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,2"}),
        ("l40s-8", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,2"}),
        ("mi300x", {"ROCR_VISIBLE_DEVICES": "1,2"}),
        ("mi250x", {"ROCR_VISIBLE_DEVICES": "1,2"}),
    ],
)
def test_variables_by_model(machine: str, expected: dict[str, str]) -> None:
    assert tp.Placement(gpus=(1, 2), topology=tp.machines.get(machine)).env() == expected


def test_each_host_of_a_tpu_slice_has_its_own() -> None:
    found = tp.Placement(gpus=(1, 2), topology=tp.machines.get("tpu-v4-64")).env()
    assert found == {host: {"TPU_VISIBLE_CHIPS": "0"} for host in ("host1", "host2")}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tp.LinkKind.XGMI, "ROCR_VISIBLE_DEVICES"),
        (tp.LinkKind.ICI, "TPU_VISIBLE_CHIPS"),
        (tp.LinkKind.NVLINK2, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_links_tell_what_no_model_does(kind: tp.LinkKind, name: str) -> None:
    topology = tp.Topology.from_links(2, [(0, 1, tp.Link(kind, 1, 50.0))])
    assert tp.Placement(gpus=(0, 1), topology=topology).env()[name] == "0,1"


NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: n1}}
status: {{capacity: {{{resource}: "4"}}}}
"""
NPUS = "$ npu-smi info -t topo\n      NPU0 NPU1 NPU2\nNPU0  X    HCCS HCCS\nNPU1  HCCS X    HCCS\nNPU2  HCCS HCCS X\n"
TILES = "        GPU 0/0|GPU 0/1|CPU Affinity\nGPU 0/0|S      |MDF    |0-3\nGPU 0/1|MDF    |S      |0-3\n"
CORNER = "| {name} | Device 0 | Device 1 |\n| Device 0 | X | PIX |\n| Device 1 | PIX | X |\n"
NUMA = "GPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: 0\n"
NVIDIA = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}


def topology_of(text: str) -> tp.Topology:
    """Return the topology of a text that has one."""
    found = tp.discovery.read(text)
    assert isinstance(found, tp.Topology)
    return found


@whole
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NODE.format(resource="nvidia.com/gpu"), NVIDIA),
        (NODE.format(resource="amd.com/gpu"), {"ROCR_VISIBLE_DEVICES": "1,0"}),
        (
            NODE.format(resource="gpu.intel.com/i915"),
            {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE", "ZE_AFFINITY_MASK": "1,0"},
        ),
        (NODE.format(resource="habana.ai/gaudi"), {"HABANA_VISIBLE_DEVICES": "1,0"}),
        (NODE.format(resource="huawei.com/Ascend910"), {"ASCEND_RT_VISIBLE_DEVICES": "0,1"}),
        (NODE.format(resource="google.com/tpu"), {"TPU_VISIBLE_CHIPS": "1,0"}),
        (NODE.format(resource="cambricon.com/mlu"), {"MLU_VISIBLE_DEVICES": "1,0"}),
        (NODE.format(resource="aws.amazon.com/neuron"), {}),
        (NODE.format(resource="example.com/gpu"), {}),
        (NPUS, {"ASCEND_RT_VISIBLE_DEVICES": "0,1"}),
        (TILES, {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "ZE_AFFINITY_MASK": "1,0"}),
        (CORNER.format(name="MTHREADS"), {"MUSA_VISIBLE_DEVICES": "1,0"}),
        (CORNER.format(name="HYGON"), {"HIP_VISIBLE_DEVICES": "1,0"}),
        (CORNER.format(name="OTHERS"), {}),
        (NUMA, {"ROCR_VISIBLE_DEVICES": "1,0"}),
    ],
)
def test_texts_tell_the_maker(text: str, expected: dict[str, str]) -> None:
    assert tp.Placement(gpus=(1, 0), topology=topology_of(text)).env() == expected


def test_devices_of_several_makers_get_no_variable() -> None:
    topology = tp.Topology(
        (tp.Gpu(0, "GPU0", "H100"), tp.Gpu(1, "GPU1", "Instinct MI210")), default=10.0, name="two"
    )
    assert tp.Placement(gpus=(0, 1), topology=topology).env() == {}
    assert tp.Placement(gpus=(0,), topology=topology).env()["CUDA_VISIBLE_DEVICES"] == "0"


MODELS = {
    Maker.NVIDIA: (
        "NVIDIA L4",
        "Tesla T4",
        "a100-80g",
        "GeForce RTX 4090",
        "Quadro RTX 8000",
        "h200",
        "4090",
        "K20X",
        "M40",
    ),
    Maker.AMD: ("AMD Instinct MI300X", "mi250", "Vega 20 [Radeon VII]", "gfx90a", "AMD_Instinct_MI210"),
    Maker.INTEL: ("Intel(R) Data Center GPU Max 1550", "pvc", "i915", "Ponte Vecchio XT"),
    Maker.GAUDI: ("gaudi2", "Intel Gaudi 3", "HL-225"),
    Maker.ASCEND: ("Ascend910", "910B3", "huawei-Ascend310P"),
    Maker.NEURON: ("Trainium2", "inferentia2", "trn1"),
    Maker.GOOGLE: ("TPU v4", "tpu-v5-lite-podslice", "v5e"),
    None: ("fast", "Graphics Device", "LATEST-GPU-MODEL"),
}


@pytest.mark.parametrize(("maker", "models"), MODELS.items(), ids=str)
def test_models_name_their_makers(maker: Maker | None, models: tuple[str, ...]) -> None:
    assert {model: of_model(model) for model in models} == dict.fromkeys(models, maker)


@pytest.mark.parametrize("name", tp.machines.names())
def test_every_built_in_machine_has_a_known_maker(name: str) -> None:
    topology = tp.machines.get(name)
    assert maker_of(topology, 0) is not Maker.UNKNOWN


@pytest.mark.parametrize("maker", Maker)
def test_the_maker_survives_json(maker: Maker) -> None:
    topology = tp.Topology((tp.Gpu(0, "GPU0", maker=maker.value),), default=10.0, name="one")
    assert tp.Topology.from_json(topology.to_json()) == topology
