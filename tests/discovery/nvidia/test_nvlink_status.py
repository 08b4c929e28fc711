from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import discovery
from topoplace.discovery.nvidia import nvlink_status
from topoplace.topology.links.link_kinds import NONE, Link

LinkKind = tp.LinkKind
DATA = Path(__file__).parents[2] / "data"
BRIDGE = (DATA / "nvlinks-2gpu-bridge.txt").read_text("utf-8")
NVSWITCH = (DATA / "nvlinks-3gpu-nvswitch.txt").read_text("utf-8")
STATUS, REMOTE = BRIDGE.split("$ nvidia-smi nvlink -R\n")


def mesh(ends: list[list[str]], model: str = "Tesla V100-SXM2-16GB") -> str:
    """The text of -R for GPUs whose links lead to these devices."""
    return "".join(
        f"GPU {i}: {model} (UUID: GPU-{i})\n"
        + "".join(f"\t Link {j}: Remote Device 00000000:{end}:00.0: Link 0\n" for j, end in enumerate(row))
        for i, row in enumerate(ends)
    )


FOUR = mesh([["0B", "0C", "0C"], ["0A", "0D"], ["0A", "0A", "0D"], ["0B", "0C"]])


def test_states_and_ends_together() -> None:
    topology = nvlink_status.parse(BRIDGE, machine="box")
    assert topology.link(0, 1) == Link(LinkKind.NVLINK4, 3, 75.0)
    assert topology.link(0, 2) == Link(LinkKind.HOST, 1, 12.0)
    uuid = "GPU-00000000-0000-0000-0000-000000000002"
    assert topology.gpus[1] == tp.Gpu(1, "GPU1", "H100", "box", uuid=uuid)
    assert topology.notes == (
        "GPU0 has inactive links: 2.",
        "GPU1 has inactive links: 2.",
        "GPU2 has no active link.",
        "Bus ids are taken to be those of the GPUs in the order of their numbers, as nvidia-smi numbers them.",
        "The speed of PCIe is not given: 12 GB/s is assumed.",
    )


def test_ends_alone_have_the_speed_of_the_model() -> None:
    assert nvlink_status.parse(REMOTE).links == nvlink_status.parse(BRIDGE).links
    assert nvlink_status.parse(REMOTE, lane_gb_per_s=20.0).bandwidth(0, 1) == 60.0
    unknown = REMOTE.replace("H100 PCIe", "X1")
    assert nvlink_status.parse(unknown, "B200").link(0, 1) == Link(LinkKind.NVLINK5, 3, 150.0)
    assert nvlink_status.parse(unknown, lane_gb_per_s=10.0).link(0, 1) == Link(LinkKind.NVLINK, 3, 30.0)
    with pytest.raises(
        tp.TopologyError,
        match="line 1: the speed of the NVLinks of 'NVIDIA X1' is unknown; give lane_gb_per_s=",
    ):
        nvlink_status.parse(unknown)


ALL_THREE = STATUS.replace(
    "NVML: Unable to retrieve NVLink information as all links are inActive",
    "\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s",
)


def test_states_alone_do_not_tell_who_is_joined() -> None:
    topology = nvlink_status.parse(ALL_THREE)
    assert {topology.link(u, v) for v in range(3) for u in range(v)} == {Link(LinkKind.UNKNOWN, 1, 12.0)}
    assert topology.notes[2:4] == (
        "Active links of GPU0, GPU1: 3 of 25 GB/s each.",
        "Active links of GPU2: 2 of 25 GB/s each.",
    )
    assert "`nvidia-smi nvlink -R` shows it." in topology.notes[-2]


def test_states_of_two_gpus_alone_tell_that_they_are_joined() -> None:
    topology = nvlink_status.parse(STATUS)
    assert topology.link(0, 1) == Link(LinkKind.NVLINK4, 3, 75.0)
    assert topology.link(1, 2) == Link(LinkKind.HOST, 1, 12.0)
    assert topology.notes[3:5] == (
        "Active links of GPU0, GPU1: 3 of 25 GB/s each.",
        "No other GPU has links, so these are taken to lead from one of the two to the other.",
    )
    fewer = STATUS.replace("Link 3: 26.562 GB/s", "Link 3: <inactive>", 1)
    assert nvlink_status.parse(fewer).link(0, 1) == Link(LinkKind.UNKNOWN, 1, 12.0)


def test_states_are_kept_as_rates() -> None:
    links = nvlink_status.read(STATUS)
    assert [gpu.active for gpu in links] == [3, 3, 0]
    assert links[0].rates == {0: 25.0, 1: 25.0, 2: None, 3: 25.0}


@pytest.mark.parametrize(
    ("rate", "payload"),
    [
        ("25.781", 25.0),
        ("26.562", 25.0),
        ("53.125", 50.0),
        ("25", 25.0),
        ("14.062", 14.0625),
        ("50.000", 50.0),
    ],
)
def test_rates_are_those_of_signals(rate: str, payload: float) -> None:
    assert nvlink_status.read(STATUS.replace("26.562", rate))[1].rates[0] == payload


def test_nvswitches_join_all() -> None:
    topology = nvlink_status.parse(NVSWITCH)
    assert [topology.link(u, v) for v in range(3) for u in range(v)] == [
        Link(LinkKind.NVSWITCH, 4, 100.0)
    ] * 3
    assert [part.name for part in topology.components] == ["NVSwitch 0005:00:00.0", "NVSwitch 0008:00:00.0"]
    lost = NVSWITCH.replace("\t Link 3: Remote Device 00000005:00:00.0: Link 33\n", "")
    assert nvlink_status.parse(lost).link(0, 1) == Link(LinkKind.NVSWITCH, 3, 75.0)
    no_second = lost.replace("\t Link 2: Remote Device 00000005:00:00.0: Link 32\n", "")
    assert nvlink_status.parse(no_second).link(1, 2) == Link(LinkKind.NVSWITCH, 2, 50.0)


def test_gpus_are_found_by_the_links_they_share() -> None:
    topology = nvlink_status.parse(FOUR)
    assert {(u, v): link.lanes for u, v, link in topology.links} == {
        (0, 1): 1,
        (0, 2): 2,
        (1, 3): 1,
        (2, 3): 1,
    }
    bus_ids = [f"0000:{part}:00.0" for part in ("0a", "0B", "0c", "0d")]
    assert nvlink_status.parse(FOUR, bus_ids=bus_ids).links == topology.links


def test_what_cannot_be_told_needs_the_bus_ids() -> None:
    three = mesh([["0B", "0C"], ["0A", "0C"], ["0A"]])
    with pytest.raises(
        tp.TopologyError,
        match=r"line 1: the text does not show to which GPUs the links of GPU0 lead; give bus_ids=",
    ):
        nvlink_status.parse(three)
    with pytest.raises(
        tp.TopologyError, match="line 1: the text does not show to which GPUs the links of GPU0 lead"
    ):
        nvlink_status.parse(mesh([["0B"], ["0A", "0A"]]))
    with pytest.raises(tp.TopologyError, match="line 4: 1 links from GPU1 to GPU2, but 0 back"):
        nvlink_status.parse(three, bus_ids=["00000000:0A:00.0", "00000000:0B:00.0", "00000000:0C:00.0"])
    part = nvlink_status.parse(mesh([["0B", "FA"], ["0A"]]), bus_ids=["0000:0A:00.0", "0000:0B:00.0"])
    assert part.link(0, 1) == Link(LinkKind.NVLINK2, 1, 25.0)
    assert part.notes[:2] == (
        "What 0000:fa:00.0 is, with links to one GPU, is not known.",
        "Left out: links from GPU0 to 0000:fa:00.0, 1 of 25 GB/s.",
    )


def test_ends_with_inactive_links_between_them() -> None:
    for inactive in ("Link 1: <inactive>", "Link 1: Remote Device <inactive>"):
        text = NVSWITCH.replace("Link 1: Remote Device 00000008:00:00.0: Link 28", inactive)
        topology = nvlink_status.parse(text)
        assert topology.link(0, 1) == Link(LinkKind.NVSWITCH, 3, 75.0)
        assert topology.notes[0] == "GPU0 has inactive links: 1."


def test_one_gpu_and_none() -> None:
    topology = nvlink_status.parse(mesh([["0B", "0C"]]))
    assert (topology.num_gpus, topology.components) == (1, ())
    idle = "".join(f"GPU {i}: NVIDIA L4 (UUID: GPU-{i})\n" for i in range(2))
    assert nvlink_status.parse(idle).link(0, 1) != NONE
    assert nvlink_status.parse(idle).links == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no GPU: the text has no line like"),
        (
            STATUS.replace("\t Link 1: 26.562 GB/s\n\t Link 2", "\t [...]\n\t Link 2", 1),
            r"line 4: \[...\] marks omitted text",
        ),
        (STATUS.replace("\t Link 1: 26.562 GB/s\n", "\t ...\n", 1), r"line 4: \.\.\. marks omitted text"),
        (
            STATUS.replace("\t Link 1: 26.562 GB/s\n", "", 1),
            "line 2: link 1 of GPU0 is missing, although link 3 is listed",
        ),
        (STATUS.replace("Link 1", "Link 0", 1), "line 4: link 0 of GPU0 appears twice"),
        (STATUS.replace("Link 1", "Link 99", 1), r"line 4: link = 99 is not in 0\.\.63"),
        (STATUS.replace("26.562", "19", 1), "line 3: the payload of a rate of 19 GB/s is unknown; known: 20"),
        (STATUS.replace("26.562 GB/s", "fast", 1), "line 3: 'Link 0: fast' is not a link"),
        ("Link 0: 25 GB/s\n", "line 1: a link without a GPU"),
        (BRIDGE.replace("<inactive>", "26.562 GB/s", 1), "line 2: 4 links of GPU0 are active, but 3 lead"),
        (BRIDGE.replace("H100 PCIe", "H200", 1), "line 15: GPU0 differs from the GPU in line 2"),
        (REMOTE.replace("Link 1", "Link 0", 1), "line 3: link 0 of GPU0 appears twice"),
        ("".join(f"GPU {i}: X\n" for i in range(1000)), "line 129: more than 128 GPUs"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        nvlink_status.parse(text)


def test_bad_arguments_are_refused_by_name() -> None:
    for bus_ids, message in [
        (["0000:0A:00.0"], "bus_ids has 1 entries, 1 of them different, for 4 GPUs"),
        (["0000:0A:00.0"] * 4, "bus_ids has 4 entries, 1 of them different, for 4 GPUs"),
        (["x"] * 4, "bus_ids: 'x' is not like"),
        ([7] * 4, "bus_ids: 7 is not like"),
    ]:
        with pytest.raises(tp.TopologyError, match=message):
            nvlink_status.parse(FOUR, bus_ids=bus_ids)  # type: ignore[arg-type]
    with pytest.raises(tp.TopologyError, match="lane_gb_per_s = 0"):
        nvlink_status.parse(FOUR, lane_gb_per_s=0)


def test_ends_may_be_printed_by_p() -> None:
    text = re.sub(r"Remote Device (\S+): Link [0-9]+", r"\1", REMOTE)
    assert nvlink_status.recognised(text)
    assert nvlink_status.parse(text) == nvlink_status.parse(REMOTE)


NONE_AT_ALL = """\
GPU 0: NVIDIA RTX A4000 (UUID: GPU-aaaa) Device does not have or support Nvlink
GPU 1: Quadro RTX 5000 (UUID: GPU-bbbb) NVML: Unable to retrieve Nvlink information as all links are inActive
"""


@pytest.mark.parametrize("text", [NONE_AT_ALL, NONE_AT_ALL.replace(") ", ")\n")], ids=["behind", "below"])
def test_gpus_without_links_are_kept(text: str) -> None:
    assert discovery.format_of(text).name == "nvidia-smi nvlink"
    topology = nvlink_status.parse(text)
    assert [(gpu.model, gpu.uuid) for gpu in topology.gpus] == [
        ("NVIDIA RTX A4000", "GPU-aaaa"),
        ("Quadro RTX 5000", "GPU-bbbb"),
    ]
    assert topology.link(0, 1).kind is LinkKind.HOST
    both = nvlink_status.parse(STATUS + NONE_AT_ALL.replace("GPU 1", "GPU 3").split("\n")[1])
    assert [gpu.name for gpu in both.gpus] == ["GPU0", "GPU1", "GPU2", "GPU3"]


def test_recognised() -> None:
    assert all(map(nvlink_status.recognised, (BRIDGE, STATUS, REMOTE, NVSWITCH, FOUR)))
    assert not any(
        map(nvlink_status.recognised, ("", "GPU 0: NVIDIA L4 (UUID: GPU-0)\n", "Link 0: 25 GB/s\n"))
    )


@given(st.sampled_from([BRIDGE, NVSWITCH, FOUR]), st.data())
def test_mutated_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, len(lines[at])))
        piece = data.draw(st.sampled_from(["", "0", "GPU 0: x", "[...]", "²", "Link 1: ", "\r"]))
        lines[at : at + 1] = data.draw(
            st.sampled_from([[], [lines[at][:cut] + piece], [lines[at], lines[at]]])
        )
        lines = lines or [""]
    try:
        assert nvlink_status.parse("\n".join(lines)).num_gpus > 0
    except tp.TopologyError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
