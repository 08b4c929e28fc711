from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from refusals import refusal
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.slurm.texts import gres

parse = gres.parse


@pytest.fixture(scope="module")
def links(repository: Path) -> str:
    return (repository / "tests/data/gres-links.conf").read_text("utf-8")


@pytest.fixture(scope="module")
def nodes(repository: Path) -> str:
    return (repository / "tests/data/gres-nodes.conf").read_text("utf-8")


def test_links_are_in_the_order_of_pci(links: str) -> None:
    assert gres.recognised(links)
    topology = parse(links, pcie_gb_per_s=20.0)
    assert topology.link(0, 1) == tp.Link(LinkKind.NVLINK3, 4, 100.0)
    assert topology.link(2, 3) == tp.Link(LinkKind.NVLINK3, 8, 200.0)
    assert topology.link(1, 2) == tp.Link(LinkKind.SYSTEM, 1, 10.0)
    assert [gpu.name for gpu in topology.gpus] == ["nvidia0", "nvidia1", "nvidia2", "nvidia3"]
    assert [gpu.socket for gpu in topology.gpus] == [0, 0, 1, 1]
    assert {gpu.model for gpu in topology.gpus} == {"a100"}
    assert "Not GPUs, and left out: 'mps'." in topology.notes


def test_a_given_model_sets_the_speed(links: str) -> None:
    topology = parse(
        links.replace("Links=-1,4", "Links=-1,2").replace("Links=4,-1", "Links=2,-1"), gpu_model="H100"
    )
    assert topology.link(0, 1) == tp.Link(LinkKind.NVLINK4, 2, 50.0)
    assert topology.gpus[0].model == "H100"


def test_more_links_than_a_gpu_has_mean_a_switch() -> None:
    rows = "\n".join(
        f"Name=gpu Type=H100 File=/dev/nvidia{i} Links={','.join('-1' if i == j else '18' for j in range(3))}"
        for i in range(3)
    )
    assert parse(rows).link(0, 2) == tp.Link(LinkKind.NVSWITCH, 18, 450.0)


def test_xgmi() -> None:
    text = "Name=gpu Type=MI250X File=/dev/a Links=-1,4\nName=gpu Type=MI250X File=/dev/b Links=4,-1"
    assert parse(text).link(0, 1) == tp.Link(LinkKind.XGMI, 4, 200.0)


def test_the_machine_has_to_be_chosen(nodes: str) -> None:
    assert gres.recognised(nodes)
    assert gres.machines(nodes) == [f"gpu{i}" for i in range(10)]
    with pytest.raises(
        tp.TopologyError, match=r"gpu\[0-7\] \| gpu\[8-9\] are not alike: choose one with node="
    ):
        parse(nodes)
    with pytest.raises(
        tp.TopologyError, match=r"line 1: AutoDetect=nvml finds the GPUs of gpu3 when Slurm starts"
    ):
        parse(nodes, node="gpu3")
    with pytest.raises(tp.TopologyError, match=r"node = 'x' is none of gpu\[0-7\] \| gpu\[8-9\]"):
        parse(nodes, node="x")
    topology = parse(nodes, node="gpu9")
    assert topology.num_gpus == 6
    assert topology.machine_names == ("gpu9",)
    assert [gpu.name for gpu in topology.gpus] == [f"GPU{i}" for i in range(6)]
    assert topology.link(0, 1).kind is LinkKind.UNKNOWN
    assert any("has no Links" in note for note in topology.notes)
    assert parse(nodes, node="gpu9", assume_no_nvlink=True).link(0, 1).kind is LinkKind.HOST


def test_cores_alone_tell_what_is_near() -> None:
    text = "Name=gpu File=/dev/nvidia[0-1] Cores=0-3\nName=gpu File=/dev/nvidia[2-3] Cores=4-7\n"
    topology = parse(text, pcie_gb_per_s=24.0)
    assert topology.link(2, 3) == tp.Link(LinkKind.UNKNOWN, 1, 24.0)
    assert topology.link(1, 2) == tp.Link(LinkKind.SYSTEM, 1, 12.0)
    assert (topology.distance(2, 3), topology.distance(1, 2)) == (1.0, 20.0)


def test_machines_that_are_alike() -> None:
    topology = parse("NodeName=n[1-3] Name=gpu File=/dev/nvidia0")
    assert topology.machine_names == ("n1",)
    assert "This is n1, and 2 more machines are described alike." in topology.notes


def test_machines_with_lines_of_the_same_content_are_alike() -> None:
    line = "Name=gpu Type=h100 File=/dev/nvidia[0-7]"
    topology = parse(f"NodeName=a {line}\nNodeName=b {line}\n")
    assert (topology.num_gpus, topology.machine_names) == (8, ("a",))
    assert "This is a, and 1 more machines are described alike." in topology.notes
    assert parse(f"NodeName=a {line}\nNodeName=b {line}\n", node="b").machine_names == ("b",)
    assert "a | b are not alike" in refusal(
        parse, f"NodeName=a {line}\nNodeName=b {line.replace('7', '3')}\n"
    )


def test_autodetect_beside_lines_is_noted() -> None:
    topology = parse("AutoDetect=nvml\nName=gpu Type=V100 Count=2")
    assert topology.num_gpus == 2
    assert topology.notes[0].startswith("AutoDetect=nvml: what the driver finds")


SHARDS = """\
AutoDetect=nvml
Name=gpu Type=rtx_pro_6000 File=/dev/nvidia[0-1]
Name=shard Count=100 File=/dev/nvidia0
Name=mps Count=400
"""


def test_shares_are_noted() -> None:
    notes = parse(SHARDS).notes
    assert (
        "Shares that jobs can get of GPUs, left out: 'shard 100 of /dev/nvidia0, mps 400 of all GPUs'."
        in notes
    )
    alone = "Name=shard Count=4 File=/dev/nvidia0"
    assert gres.recognised(alone)
    assert "no GPU: no line with Name=gpu" in refusal(parse, alone)


@pytest.mark.parametrize(
    "text",
    [
        "AutoDetect=nvml",
        "AutoDetect=nvml\nName=gpu",
        "AutoDetect=nvml\nName=gpu Type=a100\nName=gpu Type=v100 Count=2",
        "NodeName=n[1-4] AutoDetect=nvml Name=gpu Type=a100",
    ],
)
def test_autodetect_alone_does_not_tell_the_number_of_gpus(text: str) -> None:
    message = refusal(parse, text)
    assert message.startswith("line 1: AutoDetect=nvml finds the GPUs of ")
    assert "does not state their number; add Count= or File= to a line with Name=gpu" in message


def test_types_of_mig_slices() -> None:
    line = "Name=gpu Type=nvidia_a100_{0} MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{1}\n"
    topology = parse(
        line.format("1g.5gb", 7) + line.format("3g.20gb", 8) + "Name=gpu Type=a100 File=/dev/nvidia1\n"
    )
    assert [gpu.fraction for gpu in topology.gpus] == [1 / 7, 3 / 7, 1.0]
    assert [gpu.memory_gb for gpu in topology.gpus] == [5.0, 20.0, None]
    assert [gpu.parent for gpu in topology.gpus] == ["nvidia0", "nvidia0", None]
    assert [gpu.model for gpu in topology.gpus] == ["nvidia_a100", "nvidia_a100", "a100"]
    assert topology.link(0, 1).kind is LinkKind.HOST
    assert "line 1: Type = 'a30_5g.20gb' is 5 slices of 4" in refusal(
        parse, "Name=gpu Type=a30_5g.20gb Count=2"
    )


def test_a_line_without_file_and_count_is_one_gpu() -> None:
    topology = parse("AutoDetect=off\nName=gpu Type=a100")
    assert topology.num_gpus == 1
    assert "Line 2 has neither File nor Count: one GPU, as in Slurm." in topology.notes


def test_cores_that_overlap_tell_no_socket() -> None:
    topology = parse("Name=gpu File=/dev/a Cores=0-7\nName=gpu File=/dev/b Cores=0-3")
    assert [gpu.socket for gpu in topology.gpus] == [None, None]
    assert "The Cores of different GPUs overlap: sockets are not known." in topology.notes


def test_cores_in_brackets() -> None:
    topology = parse("Name=gpu File=/dev/tty[0-1] Cores=[0-3]\nName=gpu File=/dev/tty[2-3] Cores=[4-7]")
    assert [gpu.socket for gpu in topology.gpus] == [0, 0, 1, 1]


def test_ignored_and_multiple_files() -> None:
    text = "Name=gpu File=/dev/a Ignore=yes\nName=gpu MultipleFiles=/dev/a,/dev/b Count=1"
    assert parse(text).num_gpus == 1


PAIR = "Name=gpu Type=V100 File=/dev/a Links=-1,1\nName=gpu Type=V100 File=/dev/b Links=1,-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line describes a device"),
        ("Type=a100", "line 1: neither Name nor AutoDetect"),
        ("Name=mps Count=4", "no GPU: no line with Name=gpu is about machine0"),
        ("Name=gpu Count=x", "line 1: Count = 'x' is not a number"),
        ("Name=gpu Count=3 File=/dev/n[0-1]", "line 1: Count is 3, but there are 2 files"),
        ("Name=gpu Count=1M", "line 1: more than 256 GPUs"),
        ("Name=gpu Count=0", "no GPU"),
        ("Name=gpu File=/dev/n[0-99999]", "more than 256 names"),
        ("Name=gpu Cores=all", "line 1: Cores = 'all' is not a list"),
        ("Name=gpu File=/dev/n[0-1] Links=-1,1", "line 1: Links of 2 devices at once"),
        (PAIR.replace("-1,1", "-1,1,0", 1), "line 1: Links has 3 numbers for 2 GPUs"),
        (PAIR.replace("-1,1", "-1,x", 1), "line 1: Links: 'x' is not a number of links"),
        (PAIR.replace("-1,1", "1,1", 1), "line 1: Links has -1, which stands for the device itself, 0 times"),
        (PAIR.replace(" Links=1,-1", " Links=-1,1"), "line 2: Links has -1 at place 0, as has line 1"),
        (PAIR.replace(" Links=1,-1", ""), "line 2: no Links, which line 1 has"),
        (PAIR.replace("-1,1", "-1,2", 1), "line 2: Links: 1 links to a, but line 1: Links: 2 links to b"),
        (
            PAIR.replace("-1,1", "-1,7").replace("1,-1", "7,-1"),
            "line 2: Links: 7 links, more than the 6 of such a GPU",
        ),
        (PAIR.replace("V100", "tesla"), "Type = 'tesla' has no known link speed; give gpu_model="),
        ("Name=gpu Colour=red", "line 1: 'Colour' is not a key"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(parse, text)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(tp.TopologyError, match="gpu_model = 'X1' has no known link speed"):
        parse(PAIR, gpu_model="X1")


def test_zero_links_need_no_speed() -> None:
    text = "Name=gpu Type=X File=/dev/a Links=-1,0\nName=gpu Type=X File=/dev/b Links=0,-1"
    assert parse(text).link(0, 1).kind is LinkKind.HOST


@given(
    st.lists(
        st.sampled_from(
            ["Name=gpu ", "File=/dev/n[0-1] ", "Links=-1,1 ", "Cores=0-1 ", "\n", "Count=2 ", "\\"]
        )
    )
)
def test_junk(words: list[str]) -> None:
    with suppress(tp.TopologyError):
        parse("".join(words))
