"""`gres.conf` is written with a type per device, and read back by the reader of `gres.conf`."""

from __future__ import annotations

import pytest

from topoplace import Topology, TopologyError, machines
from topoplace.topology.tiling import as_machine
from topoplace_hosts.slurm import gres
from topoplace_hosts.slurm.texts import gres as reader

DGX = machines.get("dgx1-v100")


def test_machines_that_are_alike_share_lines() -> None:
    text = gres.gres_conf(Topology.cluster(DGX, 3, names=["n1", "n2", "n3"]))
    lines = text.splitlines()
    assert lines[6] == "NodeName=n[1-3] Name=gpu Type=g6 File=/dev/nvidia6"
    assert len(lines) == 8
    assert reader.machines(text) == ["n1", "n2", "n3"]


def test_types_of_a_node() -> None:
    assert gres.node_gres(as_machine(DGX, "n"))["n"] == ",".join(f"gpu:g{i}:1" for i in range(8))
    assert gres.node_gres(as_machine(DGX, "n"), types=False) == {"n": "gpu:8"}


def test_links_are_read_back() -> None:
    machine = as_machine(DGX, "n")
    text = gres.gres_conf(machine, types=False)
    again = reader.parse(text, gpu_model="V100")
    lanes = machine.link_matrix(lambda link: link.lanes if link.kind.name.startswith("NV") else 0)
    assert (
        again.link_matrix(lambda link: link.lanes if link.kind.name.startswith("NV") else 0) == lanes
    ).all()


def test_device_files() -> None:
    text = gres.gres_conf(as_machine(DGX, "n"), device_file="/tmp/{node}/gpu{number}")
    assert text.splitlines()[7].endswith("File=/tmp/n/gpu7")
    with pytest.raises(TopologyError, match=r"device_file = '/dev/nvidia' has no \{number\}"):
        gres.gres_conf(DGX, device_file="/dev/nvidia")


def test_device_files_keep_the_numbers_of_names() -> None:
    lost = as_machine(Topology.from_links(3, [], names=["GPU0", "GPU1", "GPU3"]), "n")
    files = [line.rpartition("=")[2] for line in gres.gres_conf(lost).splitlines()]
    assert files == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia3"]
    assert gres.node_gres(lost)["n"] == "gpu:g0:1,gpu:g1:1,gpu:g2:1"
    unnamed = as_machine(Topology.from_links(2, [], names=["left", "right"]), "n")
    assert [line[-1] for line in gres.gres_conf(unnamed).splitlines()] == ["0", "1"]


def test_slices_have_no_type_of_their_own() -> None:
    text = "Name=gpu Type=a100_1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21 Cores=0-3\n"
    sliced = reader.parse(f"NodeName=n {text}")
    with pytest.raises(TopologyError, match=r"machine 'n': .* is a MIG slice, .*AutoDetect=nvml"):
        gres.gres_conf(sliced)


def test_names_that_slurm_does_not_take() -> None:
    with pytest.raises(TopologyError, match="machine 'a b'"):
        gres.gres_conf(as_machine(DGX, "a b"))


def test_requests_for_exact_devices() -> None:
    assert gres.tres_of((6, 3)) == "gres:gpu:g6:1,gres:gpu:g3:1"
    assert gres.numbers_in("gres:gpu:g6:1,gres:gpu:g3:1") == (6, 3)
    assert gres.numbers_in("gres/gpu:g6=1,gpu:g3") == (6, 3)
    for text in (
        "",
        "gres:gpu:2",
        "gres:gpu:g6:2",
        "gres:gpu:g6:1,gres:gpu:g6:1",
        "gres:gpu:g6:1,gres:nic:1",
    ):
        assert gres.numbers_in(text) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("gres:gpu:4", (4, None)),
        ("gres:gpu", (1, None)),
        ("gpu:V100:2", (2, "V100")),
        ("gres:gpu:a100-80gb", (1, "a100-80gb")),
        ("gres:gpu:0", None),
        ("gres:gpu:g6:1", None),
        ("gres:gpu:2,gres:nic:1", None),
        ("gres:nic:1", None),
        ("", None),
    ],
)
def test_requests_for_any_devices(text: str, count: tuple[int, str | None] | None) -> None:
    assert gres.count_in(text) == count
