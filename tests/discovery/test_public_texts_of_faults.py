"""The second collection of public texts next to the checkout, in which faults were found: read, noted, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from distributions import whole
from refusals import refusal
from topoplace import discovery

Read = tuple[int, int, str]
"""GPUs and machines of a topology, or machines and levels of a network, and a part of a note."""

READ: dict[str, Read] = {
    "dra-104-generic-accel-numa.yaml": (2, 1, "left out: fabric."),
    "gres-105-mig-cap-files.conf": (2, 1, "tells no speed"),
    "ibnet-102-groups-chassis.topo": (2, 1, ""),
    "k8s-103-eks-ultraserver-gb200.yaml": (16, 4, "meet in its switches"),
    "k8s-106-mi300x-cpx64.yaml": (64, 1, "mi300x-1 (cpx_nps4)"),
    "k8s-109-two-makers.yaml": (16, 2, ""),
    "nccllog-102-system-maxwidth-hgxa100.txt": (4, 1, ""),
    "place-102-hypernodes-3-2.conf": (5, 2, ""),
    "place-103-two-racks-2-2.conf": (4, 2, ""),
    "place-109-blocks-18-10.conf": (28, 2, ""),
    "place-116-5nodes.conf": (5, 1, ""),
    "place-128-leafs-3-3-2.conf": (8, 2, ""),
    "place-129-leafs-3-2-2.conf": (7, 2, ""),
    "slurm-103-scontrol-no-state.txt": (4, 1, "whose state is not given"),
    "slurm-107-slurmconf-topology-default.conf": (144, 36, "what Topology= of the nodes tells"),
    "smi-102-h100-two-cut.txt": (2, 1, "its end is missing"),
    "smi-103-h100-ecc-errors.txt": (2, 1, "uncorrectable ECC errors since the driver was loaded: 12"),
    "smiq-101-mig-shared-fb.txt": (1, 1, "MIG0 (3g, 19968 MiB)"),
    "topom-106-8gpu-mp-14nic.txt": (8, 1, "hides NVLinks"),
    "topom-114-sys-one-numa.txt": (2, 1, "has no legend"),
    "topom-115-complaint-before.txt": (2, 1, "link width degraded"),
    "topoyaml-101-a4x-phantom-blocks.yaml": (6, 2, "bg1_phantom_2, bg1_phantom_3"),
}
REFUSED = {
    "gaudi-101-hlsmi-csv.txt": "this is `hl-smi` of Gaudi",
    "gres-104-npu-ascend.conf": "this is a list of NPUs of Slurm",
    "k8s-107-mi300x-cpx-zero.yaml": "no node has a GPU to give: mi300x-1 (amd.com/gpu: 0)",
    "neuron-101-ls-json.json": "this is `neuron-ls` of AWS",
    "other-101-pbsnodes.txt": "this is `pbsnodes` of PBS",
    "other-103-lsf-bhosts-gpu.txt": "this is `bhosts` or `lshosts` of LSF",
    "other-105-ray-status.txt": "this is `ray status` of Ray",
    "other-106-lspci-t.txt": "this is `lspci`",
    "other-109-gpustat.txt": "this is `gpustat`",
    "slurm-104-sinfo-noheader-nodelist-gresused.txt": "use it as --busy-from FILE",
    "slurm-108-scontrol-npu.txt": "of its kinds, npu, none is read",
}


def _data(shared: Path, name: str) -> bytes:
    path = shared / "data/public2" / name
    if not path.exists():
        pytest.skip(f"the text {name} is not on this machine")
    return path.read_bytes()


@whole
@pytest.mark.parametrize("name", sorted(READ))
def test_a_text_is_read(name: str, shared: Path) -> None:
    read = discovery.read(_data(shared, name))
    is_machines = isinstance(read, tp.Topology)
    size = (read.num_gpus, read.num_machines) if is_machines else (len(read.machines), len(read.levels))
    assert size == READ[name][:2]
    templates = read.templates if is_machines else ()
    notes = (*read.notes, *(note for one in templates for note in one.notes))
    assert any(READ[name][2] in note for note in notes)


@whole
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_text_is_refused_by_its_tool(name: str, shared: Path) -> None:
    assert REFUSED[name] in refusal(discovery.read, _data(shared, name))


def test_no_text_is_forgotten(shared: Path) -> None:
    folder = shared / "data/public2"
    if not folder.is_dir():
        pytest.skip("the second collection is not on this machine")
    assert {path.name for path in folder.iterdir()} - {"INDEX.md"} == {*READ, *REFUSED}
