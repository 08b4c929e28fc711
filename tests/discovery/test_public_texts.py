"""Every real text of public reports next to the checkout is read as the table says, or refused in these words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from distributions import whole
from refusals import refusal
from topoplace import discovery

Read = tuple[str, int, int]
"""A topology with its GPUs and machines, a network with its machines and levels, or measured speeds of GPUs."""

EXPECTED: dict[str, Read | str] = {
    "amdsmi-01-mi250x-hops-bw.txt": ("topology", 8, 1),
    "dra-01.yaml": ("topology", 8, 1),
    "dra-03.yaml": ("topology", 4, 1),
    "dra-06.yaml": ("topology", 8, 1),
    "gres-01-bcm.conf": ("topology", 4, 1),
    "gres-02-mig-mixed.conf": ("topology", 8, 1),
    "gres-03-mig-nvml.conf": ("topology", 3, 1),
    "gres-06-overlapping-files.conf": "line 4: File '/dev/nvidia0' is that of line 3",
    "gres-07-dgx64.conf": ("topology", 8, 1),
    "gres-08-deepops-doublecomma.conf": "line 3: Links has 9 numbers for 8 GPUs",
    "gres-08b-deepops-repaired.conf": ("topology", 8, 1),
    "hwloc-coral-lassen.xml": ("topology", 4, 1),
    "hwloc-epyc-corona-p2.xml": ("topology", 8, 1),
    "hwloc-epyc-corona.xml": ("topology", 4, 1),
    "hwloc-flux-rsmi_corona240.xml": ("topology", 8, 1),
    "hwloc-g4dnmetal.xml": ("topology", 8, 1),
    "hypernode-01-labelmatch.yaml": "line 9: a member of HyperNode 'rack-0' is selected by 'labelMatch'",
    "ibnet-03.topo": ("network", 5, 2),
    "k8s-02-oke-gb300.yaml": ("topology", 16, 4),
    "k8s-03-gke-h100-blocks.yaml": ("topology", 64, 8),
    "k8s-05-gke-tpu.yaml": ("topology", 8, 2),
    "k8s-07-eks-table.txt": ("network", 4, 3),
    "k8s-08-ascend.yaml": ("topology", 8, 1),
    "kueue-01-topology.yaml": "a Topology names levels (cloud.provider.com/topology-rack",
    "nccl-02-hygon-dcu.xml": ("topology", 2, 1),
    "nccl-03-gcp-a3-invisible-switch.xml": ("topology", 2, 1),
    "nccllog-01-h200vm-system.txt": ("topology", 2, 1),
    "nccllog-02-gb200-mnnvl.txt": ("topology", 4, 1),
    "nccllog-03-rings-20ranks-cut.txt": "line 1: this is a log of NCCL's rings and trees:",
    "nccllog-04-8ranks-2nodes.txt": "line 2: this is a log of NCCL's rings and trees:",
    "nvlinks-03-v100-inactive.txt": "line 2: .... marks omitted text",
    "nvlinks-04-gb200.txt": ("topology", 4, 1),
    "nvlinks-05-a100-elided.txt": "line 29: ...... marks omitted text",
    "p2pbw-01-2x4090.txt": ("speeds", 2, 0),
    "p2pbw-02-8x3090-within-slower.txt": ("speeds", 8, 0),
    "p2pbw-03-7gpu-mixed-access-only.txt": ("topology", 7, 1),
    "place-05-cluster.json": ("topology", 204, 51),
    "place-05-slurm-3x17.conf": ("network", 51, 1),
    "place-10-volcano-soft.yaml": ("network", 6, 3),
    "place-11-volcano-leaves.conf": ("network", 8, 2),
    "place-14-4gpu-2sockets.txt": ("topology", 4, 1),
    "place-15-8gpu-pix-phb-sys.txt": ("topology", 8, 1),
    "place-16-gpu-lost.txt": ("topology", 3, 1),
    "place-16b-smiL-lost.txt": ("topology", 3, 1),
    "rccl-4p3l_ia.xml": ("topology", 8, 1),
    "rccl-8p1h_2.xml": ("topology", 8, 1),
    "rccl-8p6l_3nic.xml": ("topology", 8, 1),
    "rccl-8p_4nics.xml": ("topology", 8, 1),
    "rccl-8p_rome_4nics.xml": ("topology", 8, 1),
    "rocm-01-mi250-weights-hops-cut.txt": ("topology", 8, 1),
    "rocm-02-mi210-2hives-vllm-env.txt": ("topology", 8, 1),
    "rocm-03-4gpu-pcie-2numa-60.txt": ("topology", 4, 1),
    "rocm-06-numa-only.txt": ("topology", 8, 1),
    "sacct-01-noheader-requeued.txt": "line 1: this is a dump of sacct:",
    "sacct-03-steps.txt": "line 1: this is a dump of sacct:",
    "sacct-04-aligned.txt": "line 1: this is a dump of sacct:",
    "slurm-01-sinfo-gresused.txt": "use it as --busy-from FILE",
    "slurm-02-scontrol-node.txt": ("topology", 8, 1),
    "slurm-03-scontrol-oneline.txt": ("topology", 4, 1),
    "slurmjson-01-nodes.json": "no node has a GPU: Gres of node145",
    "slurmjson-02-jobs.json": "use it as --busy-from FILE",
    "slurmjson-03-sinfo.json": "no node has a GPU: Gres of cs2.",
    "smi-table-01-h100mig.txt": ("topology", 1, 1),
    "smi-table-02-h200.txt": ("topology", 1, 1),
    "smiq-02-h200.txt": ("topology", 1, 1),
    "topo-other-01-gpustack-mthreads.txt": ("topology", 8, 1),
    "topo-other-03-ascend.txt": ("topology", 8, 1),
    "topoconf-01-blocksizes5.conf": ("network", 32, 5),
    "topograph-dual-xclr-regular.yaml": ("network", 96, 5),
    "topograph-large.yaml": ("network", 96, 4),
    "topom-01-gb200-ansi-blankcpu.txt": ("topology", 4, 1),
    "topom-02-h20-36nic-glued.txt": ("topology", 8, 1),
    "topom-07-gb200-plain.txt": ("topology", 4, 1),
    "topom-09-8xa800-nv8.txt": ("topology", 8, 1),
    "topom-10-8xb200-4numa-cut.txt": "line 8: 5 columns, the header has 17",
    "topom-13-2gpu-nv3-partial.txt": ("topology", 2, 1),
    "topom-15-2x5070-command-on-header.txt": ("topology", 2, 1),
    "topom-16-2gpu-indented-wrapped-p2p.txt": ("topology", 2, 1),
    "topom-18-8xa100-glued-mlx.txt": ("topology", 8, 1),
    "topom-19-8gpu-pix-fours-cutnic7.txt": ("topology", 8, 1),
    "topom-20-2xa100-blank-affinity.txt": ("topology", 2, 1),
    "topom-22-5gpu-mixed-5090-4090.txt": ("topology", 5, 1),
    "topom-23-8gpu-pix-pairs-nonuma.txt": ("topology", 8, 1),
    "topom-25-8gpu-mp-phb4.txt": ("topology", 8, 1),
    "topom-27-8gpu-nic8nic9-glued.txt": ("topology", 8, 1),
    "trace-01-alibaba2025-dlrm-head.csv": "line 1: this is CSV with the columns 'instance_sn'",
    "trace-02-alibaba2026-nodes.csv": ("topology", 10412, 4278),
}


@dataclass(frozen=True)
class Facts:
    """What a person reads in a text: nothing of it is lost."""

    pairs: Mapping[str, int]
    """The number of pairs by the label of their link."""
    nics: int
    sockets: int
    """The number of sockets with GPUs; 0 if they are not given."""
    models: tuple[str, ...]
    busy: tuple[int, ...]
    note: str = ""
    """Part of the note on what a topology has no place for."""


FACTS: dict[str, Facts] = {
    "amdsmi-01-mi250x-hops-bw.txt": Facts(
        {"XGMI": 12, "XGMI_RELAYED": 16}, 0, 0, (), (), "16 of 28 pairs have no direct link"
    ),
    "dra-01.yaml": Facts({"UNKNOWN": 4, "SYS": 24}, 0, 4, ("NVIDIA A100-SXM4-40GB",), (), "do not say how"),
    "dra-03.yaml": Facts({"UNKNOWN": 6}, 0, 0, ("NVIDIA GB300",), ()),
    "dra-06.yaml": Facts({"UNKNOWN": 28}, 0, 0, ("LATEST-GPU-MODEL",), ()),
    "gres-01-bcm.conf": Facts({"UNKNOWN": 2, "SYS": 4}, 0, 2, ("h100",), (), "The file has no Links"),
    "gres-02-mig-mixed.conf": Facts({"UNKNOWN": 3, "SYS": 24, "PHB": 1}, 0, 4, ("a100", "nvidia_a100"), ()),
    "gres-03-mig-nvml.conf": Facts({"PHB": 3}, 0, 0, ("nvidia_a100_80gb_pcie",), ()),
    "gres-07-dgx64.conf": Facts({"UNKNOWN": 12, "SYS": 16}, 0, 2, ("h100",), (), "63 more machines"),
    "gres-08b-deepops-repaired.conf": Facts({"PHB": 4, "SYS": 24}, 0, 4, (), ()),
    "hwloc-coral-lassen.xml": Facts(
        {"PIX": 2, "SYS": 4}, 4, 2, ("Tesla V100-SXM2-16GB",), (), "NVLinkBandwidth"
    ),
    "hwloc-epyc-corona-p2.xml": Facts(
        {"NODE": 12, "SYS": 16}, 1, 2, ("Vega 20 WKS GL-XE [Radeon Pro VII]",), ()
    ),
    "hwloc-epyc-corona.xml": Facts({"NODE": 2, "SYS": 4}, 1, 2, ("Vega 20",), ()),
    "hwloc-flux-rsmi_corona240.xml": Facts({"NODE": 12, "SYS": 16}, 1, 2, ("deon Instinct MI50 32GB",), ()),
    "hwloc-g4dnmetal.xml": Facts({"PHB": 4, "NODE": 8, "SYS": 16}, 1, 2, ("Tesla T4",), ()),
    "k8s-02-oke-gb300.yaml": Facts({"NVSWITCH": 120}, 0, 0, ("NVIDIA-GB300",), (), "rdma.network_block_id"),
    "k8s-03-gke-h100-blocks.yaml": Facts(
        {"UNKNOWN": 224, "NETWORK": 1792}, 0, 0, ("nvidia-h100-80gb",), (), "gce-topology-block"
    ),
    "k8s-05-gke-tpu.yaml": Facts({"UNKNOWN": 12, "NETWORK": 16}, 0, 0, ("tpu-v4-podslice",), (), "2x2x2"),
    "k8s-08-ascend.yaml": Facts({"UNKNOWN": 28}, 0, 0, ("910B3",), ()),
    "nccl-02-hygon-dcu.xml": Facts({"PXB": 1}, 0, 1, (), ()),
    "nccl-03-gcp-a3-invisible-switch.xml": Facts({"NVSWITCH": 1}, 2, 1, (), ()),
    "nccllog-01-h200vm-system.txt": Facts({"NVSWITCH": 1}, 2, 1, (), (), "0.2 GB/s"),
    "nccllog-02-gb200-mnnvl.txt": Facts({"NVSWITCH": 6}, 0, 0, (), (), "In the NVLink domain"),
    "nvlinks-04-gb200.txt": Facts({"UNKNOWN": 6}, 0, 0, ("GB200",), (), "18 of 50 GB/s each"),
    "p2pbw-03-7gpu-mixed-access-only.txt": Facts(
        {"UNKNOWN": 5, "PHB": 16},
        0,
        0,
        ("3090", "A6000", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 5090"),
        (),
        "Direct access is supported for 5 of 21 pairs",
    ),
    "place-14-4gpu-2sockets.txt": Facts({"PIX": 2, "SYS": 4}, 0, 2, (), ()),
    "place-15-8gpu-pix-phb-sys.txt": Facts({"PIX": 4, "PHB": 8, "SYS": 16}, 0, 2, (), ()),
    "place-16-gpu-lost.txt": Facts({"NVLINK": 1, "SYS": 2}, 0, 2, (), (), "A GPU is missing: GPU2"),
    "place-16b-smiL-lost.txt": Facts({"UNKNOWN": 3}, 0, 0, ("A100",), (), "A GPU is missing: GPU2"),
    "rccl-4p3l_ia.xml": Facts({"XGMI": 12, "PHB": 16}, 1, 1, (), ()),
    "rccl-8p1h_2.xml": Facts({"XGMI": 12, "SYS": 16}, 2, 4, (), ()),
    "rccl-8p6l_3nic.xml": Facts({"XGMI": 24, "SYS": 4}, 3, 2, (), ()),
    "rccl-8p_4nics.xml": Facts({"XGMI": 12, "SYS": 16}, 4, 4, (), ()),
    "rccl-8p_rome_4nics.xml": Facts({"XGMI": 12, "SYS": 16}, 4, 4, (), ()),
    "rocm-01-mi250-weights-hops-cut.txt": Facts(
        {"XGMI": 12, "XGMI_RELAYED": 16}, 0, 0, (), (), "The table of hops is left out"
    ),
    "rocm-02-mi210-2hives-vllm-env.txt": Facts({"XGMI": 12, "SYS": 16}, 0, 2, (), ()),
    "rocm-03-4gpu-pcie-2numa-60.txt": Facts({"PHB": 2, "SYS": 4}, 0, 2, (), ()),
    "rocm-06-numa-only.txt": Facts({"UNKNOWN": 12, "SYS": 16}, 0, 2, (), ()),
    "slurm-02-scontrol-node.txt": Facts(
        {"UNKNOWN": 28}, 0, 0, ("m60",), (0, 1, 2, 3, 4, 5, 6, 7), "several sockets"
    ),
    "slurm-03-scontrol-oneline.txt": Facts({"UNKNOWN": 6}, 0, 0, ("a100",), (0, 1), "--busy-from"),
    "smi-table-01-h100mig.txt": Facts({}, 0, 0, ("H100",), (0,), "cut into MIG slices"),
    "smi-table-02-h200.txt": Facts({}, 0, 0, ("H200",), ()),
    "smiq-02-h200.txt": Facts({}, 0, 0, ("H200",), (), "In the NVLink domain"),
    "topo-other-01-gpustack-mthreads.txt": Facts(
        {"NODE": 12, "SYS": 16}, 0, 2, (), (), "8 (NODE) and 6 (SYS) GB/s"
    ),
    "topo-other-03-ascend.txt": Facts({"UNKNOWN": 28}, 0, 4, (), (), "28 pairs have HCCS"),
    "topom-01-gb200-ansi-blankcpu.txt": Facts({"NVSWITCH": 6}, 6, 2, (), (), "50 GB/s per NVLink is assumed"),
    "topom-02-h20-36nic-glued.txt": Facts({"NVSWITCH": 28}, 36, 2, ("H20",), ()),
    "topom-07-gb200-plain.txt": Facts({"NVSWITCH": 6}, 0, 2, (), (), "50 GB/s per NVLink is assumed"),
    "topom-09-8xa800-nv8.txt": Facts({"NVSWITCH": 28}, 9, 2, (), ()),
    "topom-13-2gpu-nv3-partial.txt": Facts({"NVLINK": 1}, 0, 1, (), ()),
    "topom-15-2x5070-command-on-header.txt": Facts({"PHB": 1}, 0, 1, (), ()),
    "topom-16-2gpu-indented-wrapped-p2p.txt": Facts({"NODE": 1}, 0, 1, (), (), "nvidia-smi topo -p2p"),
    "topom-18-8xa100-glued-mlx.txt": Facts({"NVSWITCH": 28}, 10, 2, (), ()),
    "topom-19-8gpu-pix-fours-cutnic7.txt": Facts(
        {"PIX": 12, "SYS": 16}, 8, 2, (), (), "the text ends inside the row of NIC7"
    ),
    "topom-20-2xa100-blank-affinity.txt": Facts({"SYS": 1}, 2, 2, (), ()),
    "topom-22-5gpu-mixed-5090-4090.txt": Facts(
        {"SYS": 4, "PHB": 2, "NODE": 4}, 0, 2, (), (), "10 (PHB), 8 (NODE) and 6 (SYS)"
    ),
    "topom-23-8gpu-pix-pairs-nonuma.txt": Facts(
        {"PIX": 4, "PXB": 8, "SYS": 16}, 1, 2, (), (), "12 (PIX), 11 (PXB) and 6 (SYS)"
    ),
    "topom-25-8gpu-mp-phb4.txt": Facts({"PHB": 12, "SYS": 16}, 9, 2, (), (), "hides NVLinks"),
    "topom-27-8gpu-nic8nic9-glued.txt": Facts({"NVSWITCH": 28}, 12, 2, (), ()),
}


@whole
@pytest.mark.parametrize("name", sorted(FACTS))
def test_nothing_is_silent(name: str, shared: Path) -> None:
    data, facts = _data(shared, name), FACTS[name]
    read = discovery.read(data)
    assert isinstance(read, tp.Topology)
    pairs = Counter(read.link(u, v).kind.label for u, v in combinations(range(read.num_gpus), 2))
    assert pairs == facts.pairs
    assert len(read.nics) == facts.nics
    assert len({gpu.socket for gpu in read.gpus} - {None}) == facts.sockets
    assert sorted({gpu.model for gpu in read.gpus if gpu.model}) == list(facts.models)
    assert any(facts.note in note for note in ("", *read.notes))
    if discovery.format_of(data).tells_use and not name.startswith("k8s"):
        assert discovery.busy_gpus(data, read) == facts.busy


def test_every_machine_of_the_texts_has_its_facts() -> None:
    machines = {name for name, read in EXPECTED.items() if read[0] == "topology" and int(read[1]) <= 64}
    assert machines == set(FACTS)


@whole
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_public_text(name: str, shared: Path) -> None:
    data = _data(shared, name)
    expected = EXPECTED[name]
    if isinstance(expected, str):
        assert expected in refusal(discovery.read, data)
    else:
        assert _summary(discovery.read(data)) == expected


def test_no_public_text_is_forgotten(shared: Path) -> None:
    folder = shared / "data/public"
    if not folder.is_dir():
        pytest.skip("the public texts are not on this machine")
    assert {path.name for path in folder.iterdir()} - {"INDEX.md"} == set(EXPECTED)


def test_a_cut_row_of_an_adapter_is_noted(shared: Path) -> None:
    topology = discovery.read(_data(shared, "topom-19-8gpu-pix-fours-cutnic7.txt"))
    assert len(topology.nics) == 8
    assert any("the text ends inside the row of NIC7" in note for note in topology.notes)


def test_half_of_both_directions(shared: Path) -> None:
    speeds = discovery.read(_data(shared, "p2pbw-02-8x3090-within-slower.txt"))
    assert (speeds[0, 1], speeds[0, 4]) == (3.06, 4.285)


def test_a_cut_ring_says_where(shared: Path) -> None:
    data = _data(shared, "nccllog-03-rings-20ranks-cut.txt")
    with pytest.raises(
        tp.JobGraphError, match="channel 0 shows 20 ranks and ends at rank 21: NCCL cuts it off"
    ):
        tp.JobGraph.from_nccl_log(data)
    assert tp.JobGraph.from_nccl_log(_data(shared, "nccllog-04-8ranks-2nodes.txt")).num_tasks == 8


def _data(shared: Path, name: str) -> bytes:
    path = shared / "data/public" / name
    if not path.exists():
        pytest.skip(f"the text {name} is not on this machine")
    return path.read_bytes()


def _summary(read: object) -> Read:
    if isinstance(read, tp.Topology):
        return "topology", read.num_gpus, read.num_machines
    if isinstance(read, tp.Fabric):
        return "network", len(read.machines), len(read.levels)
    assert isinstance(read, np.ndarray)
    return "speeds", len(read), 0
