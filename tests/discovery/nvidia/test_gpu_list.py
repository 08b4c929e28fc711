from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.discovery.nvidia import gpu_list, nvlink_status

MIG = (Path(__file__).parents[2] / "data/nvidialist-mig.txt").read_text("utf-8")


def test_slices_are_fractions_of_their_parents() -> None:
    topology = gpu_list.parse(MIG, machine="box")
    assert [gpu.name for gpu in topology.gpus] == [
        *("GPU0/MIG0", "GPU0/MIG1", "GPU0/MIG2", "GPU1/MIG0", "GPU2", "GPU3"),
    ]
    assert [gpu.fraction for gpu in topology.gpus] == [3 / 7, 2 / 7, 1 / 7, 1 / 7, 1.0, 1.0]
    assert [gpu.parent for gpu in topology.gpus] == ["GPU0"] * 3 + ["GPU1", None, None]
    assert [gpu.memory_gb for gpu in topology.gpus] == [20.0, 10.0, 5.0, 20.0, None, None]
    assert topology.gpus[3].uuid == "MIG-GPU-00000000-0000-0000-0000-000000000002/1/0"
    assert {(gpu.model, gpu.machine) for gpu in topology.gpus} == {("A100", "box")}


def test_slices_without_uuids_are_no_devices() -> None:
    text = MIG.replace(": (UUID: MIG-00000000-0000-0000-0000-000000000012)", ":")
    topology = gpu_list.parse(text)
    assert [(gpu.name, gpu.healthy) for gpu in topology.gpus] == [
        ("GPU0", False), ("GPU1/MIG0", True), ("GPU2", True), ("GPU3", True),
    ]  # fmt: skip
    assert "Cut into MIG slices, which are devices of their own here: GPU1." in topology.notes
    assert any("GPU0 is cut" in note and "MIG1 (2g, 10 GB)" in note for note in topology.notes)


def test_links_are_not_told() -> None:
    topology = gpu_list.parse(MIG.encode(), pcie_gb_per_s=24.0)
    assert topology.link(4, 5) == tp.Link(tp.LinkKind.UNKNOWN, 1, 24.0)
    assert topology.link(0, 1) == topology.link(0, 4) == tp.Link(tp.LinkKind.HOST, 1, 24.0)
    assert topology.notes[0] == "How the GPUs are connected is not given: 24 GB/s is assumed."


@pytest.mark.parametrize(
    ("model", "profile", "fraction"),
    [
        ("NVIDIA A30", "2g.12gb", 1 / 2),
        ("NVIDIA H100 80GB HBM3", "7g.80gb", 1.0),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "1g.24gb+me.all", 1 / 4),
    ],
)
def test_models_are_cut_differently(model: str, profile: str, fraction: float) -> None:
    text = f"GPU 0: {model} (UUID: GPU-1)\n  MIG {profile} Device 0: (UUID: MIG-1)\n"
    assert gpu_list.parse(text).gpus[0].fraction == fraction


def test_profiles_say_which_engines_a_slice_has_more_or_less() -> None:
    gpu = "GPU 0: NVIDIA RTX PRO 6000 Blackwell (UUID: GPU-1)\n"
    slices = (
        f"  MIG 1g.24gb{engines} Device {i}: (UUID: MIG-{i})\n" for i, engines in enumerate(("-me", "+gfx"))
    )
    assert [slice_.fraction for slice_ in gpu_list.parse(gpu + "".join(slices)).gpus] == [0.25, 0.25]


def test_the_gpu_of_a_system_on_a_chip() -> None:
    (gpu,) = gpu_list.parse("GPU 0: Orin (nvgpu) (UUID: 01234567-89ab)\n").gpus
    assert (gpu.model, gpu.uuid) == ("Orin (nvgpu)", "01234567-89ab")


def test_whole_gpus() -> None:
    topology = gpu_list.parse("$ nvidia-smi -L\nGPU 0: Tesla T4 (UUID: GPU-1)\nGPU 3: Tesla T4\n")
    assert [(gpu.name, gpu.model, gpu.uuid) for gpu in topology.gpus] == [
        ("GPU0", "Tesla T4", "GPU-1"),
        ("GPU3", "Tesla T4", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no GPU: the text has no line like"),
        (MIG.replace("3g.20gb", "3x.20gb", 1), "line 2: 'MIG 3x.20gb     Device  0"),
        (MIG.replace("Device  1", "Device  0"), "line 3: slice 0 of GPU0 appears twice"),
        (MIG.replace("1c.3g", "4c.3g"), "line 6: 4c of 3g is more than there is"),
        (MIG.replace("2g.10gb", "5g.10gb"), "line 1: GPU0 has 9 slices of 7"),
        (
            MIG.replace("GPU 1", "GPU 0"),
            "line 5: GPU0 appears twice, first in line 1; give each machine its own text",
        ),
        (
            MIG.replace("A100-SXM4-40GB", "X1"),
            "line 1: the number of slices of a 'NVIDIA X1' is unknown; give slices_per_gpu=",
        ),
        (MIG.split("\n", 1)[1], "line 1: a slice without a GPU"),
        (MIG + "[...]\n", r"line 9: \[...\] marks omitted text"),
        ("".join(f"GPU {i}: X\n" for i in range(1000)), "line 129: more than 128 GPUs"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        gpu_list.parse(text)


def test_arguments() -> None:
    unknown = MIG.replace("A100-SXM4-40GB", "X1")
    assert gpu_list.parse(unknown, slices_per_gpu=8).gpus[0].fraction == 3 / 8
    with pytest.raises(tp.TopologyError, match="slices_per_gpu = 0"):
        gpu_list.parse(MIG, slices_per_gpu=0)


def test_recognised() -> None:
    assert gpu_list.recognised(MIG)
    assert not nvlink_status.recognised(MIG)
    assert not any(map(gpu_list.recognised, ("", "\tGPU0\nGPU0\tX\n", "GPU 0: L4\n\t Link 0: 25 GB/s\n")))


@given(st.text(st.sampled_from("GPU 01:MIG.gbcDevice\n(UUID: )")), st.integers(0, len(MIG)))
def test_any_text_is_read_or_refused(text: str, at: int) -> None:
    for candidate in (text, MIG[:at] + text + MIG[at:]):
        try:
            assert gpu_list.parse(candidate).num_gpus > 0
        except tp.TopologyError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
