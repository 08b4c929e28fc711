"""A text that no reader reads is refused by the name of its tool, with what to give in its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributions import whole
from refusals import refusal
from topoplace import discovery
from topoplace.discovery import unread_tools

TEXTS = {
    "apiVersion: v1\nkind: Pod\nspec:\n  limits:\n    nvidia.com/gpu: 4\n": "line 2: this is the manifest of a Kub",
    '{"kind": "Job",\n "kind": "Job"\n, "n": 1}': "line 2: this is the manifest of a Kubernetes workload",
    "$ nvidia-smi topo\nbash: nvidia-smi: command not found\n": "line 2: this is the message that a command was not f",
    "NVIDIA-SMI has failed because of its driver.\n": "line 1: this is the message of nvidia-smi that the driver",
    "kind: ConfigMap\ndata:\n  topology.conf: |\n    BlockName=b Nodes=n\n": "line 1: this is a ConfigMap of",
    "No devices were found\n": "line 1: this is the message that there is no GPU",
    "Traceback (most recent call last):\n  x\n": "line 1: this is the error of a Python program",
    "cat: topo.txt: No such file or directory\n": "line 1: this is an error of the shell",
    "<!DOCTYPE html>\n<html><head></head></html>\n": "line 1: this is a page of HTML",
    "h:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n": "line 1: this is a log of NCCL's rings and trees",
    "h:1:2 [0] NCCL INFO Bootstrap\n": "line 1: this is a debug log of NCCL",
    "JobID|State|AllocTRES\n1|COMPLETED|gres/gpu=2\n": "line 1: this is a dump of sacct",
    "7|a|FAILED|x|gres/gpu=2\n": "line 1: this is a dump of sacct",
    " JOBID PARTITION NAME\n 7 gpu train\n": "line 1: this is the queue that squeue prints",
    "JobId=7 JobName=train\n   UserId=a\n": "line 1: this is jobs as `scontrol show job` prints them",
    "NAME READY STATUS RESTARTS AGE\nx 1/1 Running 0 1d\n": "line 1: this is pods as `kubectl get pods` prints",
    "Name: x\nNamespace: y\nContainers:\n  c:\n": "line 3: this is a pod as `kubectl describe pod` prints it",
    "physicalCluster:\n  cellTypes:\n": "line 1: this is a configuration of HiveD",
    "ConstrainDevices=yes\n": "line 1: this is cgroup.conf of Slurm",
    "ClusterName=c\nSlurmctldHost=h\n": "line 1: this is a configuration file of Slurm",
    "+--+\n| npu-smi 23.0 |\n": "line 2: this is `npu-smi` of Ascend",
    "$ gpustack-runtime topo\n": "line 1: this is `gpustack-runtime`",
    "$ mthreads-gmi\n": "line 1: this is `mthreads-gmi` of Moore Threads",
    "$ xpu-smi topology -m\n": "line 1: this is `xpu-smi` of Intel",
    "| HL-SMI Version: 1.2 |\n": "line 1: this is `hl-smi` of Gaudi",
    "| NEURON | NEURON | PCI |\n": "line 1: this is `neuron-ls` of AWS",
    "TPU Chips\n": "line 1: this is `tpu-info`",
    "$ cnmon topo\n": "line 1: this is `cnmon` of Cambricon",
    "mx-smi  version: 2\n": "line 1: this is `mx-smi` of MetaX",
    "# gpu   pwr gtemp\n# Idx     W     C\n    0    60    33\n": "line 1: this is the statistics of `nvidia-smi dmon`",
    "index, name, memory.total [MiB]\n0, NVIDIA A10, 1 MiB\n": "line 1: this is the table of `nvidia-smi --query-gpu`",
    "NVIDIA A10, GPU-5d5b0000-0000-0000-0000-000000000001, 4 MiB\n": "line 1: this is the table of `nvidia-smi --query",
    "4 MiB, GPU-5d5b0000-0000-0000-0000-000000000001\n": "line 1: this is the table of `nvidia-smi --query-gpu`",
    '{\n"nvbandwidth": {}}': "line 2: this is `nvbandwidth`",
    "Running host_to_device_memcpy_ce.\n": "line 1: this is `nvbandwidth`",
    "#Entity   PCITX\nGPU 0   1\n": "line 1: this is `dcgmi`",
    "| AMD-SMI 24.6.2 |\n": "line 1: this is the table of devices of `amd-smi`",
    "LINK METRIC TABLE:\n  bdf bit_rate\n": "line 1: this is `amd-smi xgmi`",
    '[{"bdf": "0000:05:00.0",\n "link_metrics": {"link_type": "XGMI"}}]': "line 2: this is `amd-smi xgmi`",
    "== ROCm System Management Interface ==\nGPU Temp\n": "line 1: this is the table of devices of `rocm-smi`",
    "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n": "line 1: this is the first lines of p2pBandwidthLat",
    "Detected 2 CUDA Capable device(s)\n": "line 1: this is deviceQuery",
    "3b:00.0 3D controller: NVIDIA Corporation\n": "line 1: this is `lspci`",
    "CA 'mlx5_0'\n\tCA type: MT4129\n": "line 1: this is `ibstat`",
    "hca_id:\tmlx5_0\n": "line 1: this is `ibv_devinfo`",
    "1: lo: <LOOPBACK,UP> mtu 65536\n": "line 1: this is the adapters that `ip` or `ifconfig` prints",
    "Architecture:  x86_64\nCPU(s): 8\n": "line 1: this is `lscpu`",
    "  PID TTY  TIME CMD\n": "line 1: this is `df`, `free`, `uname` or `ps`",
    "[CudaDevice(id=0), CudaDevice(id=1)]\n": "line 1: this is the devices that JAX lists",
    "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ngpu up inf 1 idle a\n": "line 1: this is nodes as `sinfo`",
    "NAME STATUS ROLES AGE VERSION\na Ready <none> 1d v1.34\n": "line 1: this is `kubectl get nodes` without labels",
    "NAME   NODE   DRIVER   POOL   AGE\n": "line 1: this is the table of ResourceSlices",
    "Switch: 0x0c42a1 leaf-1:\n": "line 1: this is `iblinkinfo` or `ibnodes`",
    "GPU: 0\n    BDF: 0000:05:00.0\n": "line 1: this is what `amd-smi list`, `static` or `metric` prints",
    "apiVersion: x/v1\nkind: ComputeDomain\n": "line 1: this is an object of Kubernetes that is no node",
    "JOBID TRES_PER_NODE NODELIST\n1 gres:gpu:4 g1\n": "line 1: this is the queue that squeue prints",
    "nvbandwidth Version: v0.7\nBuilt from Git\n": "line 1: this is `nvbandwidth`",
    '[\n {"neuron_device": 0,\n  "bdf": "10:1c.0"}]': "line 2: this is `neuron-ls` of AWS",
    "0, hl-325-gaudi3, 131072\n1, hl-325-gaudi3, 131072\n": "line 1: this is `hl-smi` of Gaudi",
    "name, module_id, memory.total [MiB]\nhl-225, 1, 98304 MiB\n": "line 1: this is `hl-smi` of Gaudi",
    "Name=npu Type=910b File=/dev/davinci[0-7]\n": "line 1: this is a list of NPUs of Slurm",
    "h1  Mon Sep  7 2026  560.35\n[0] NVIDIA H100 | 27°C,   0 % |    4 / 81559 MB |\n": "line 2: this is `gpustat`",
    "h1\n     Mom = h1.local\n     ntype = PBS\n": "line 2: this is `pbsnodes` of PBS",
    "HOST_NAME GPU_ID MODEL MUSED\nh1 0 TeslaV100 0G\n": "line 1: this is `bhosts` or `lshosts` of LSF",
    "Name OpSys Arch State\nslot1@h1 LINUX X86_64 Unclaimed\n": "line 1: this is `condor_status` of HTCondor",
    "     STATE NNODES NCORES NGPUS NODELIST\n      free 2 64 8 h[1-2]\n": "line 1: this is `flux resource` of Flux",
    "==== Autoscaler status: 2026-09-01 ====\nNode status\n": "line 1: this is `ray status` of Ray",
    "$ gpurun -topo\n": "line 1: this is `gpurun`",
    "ROCk module is loaded\n": "line 1: this is `rocminfo`",
    "-+-[0000:00]-+-00.0\n |           \\-18.7\n +-[0000:20]-+-00.0\n": "line 1: this is `lspci`",
    "-[0000:00]-+-00.0\n": "line 1: this is `lspci`",
    "| GPU instances:        |\n| GPU Name  Profile |\n": "line 1: this is a list of instances of MIG slices",
    "n1 gpu:h100:4(IDX:0-\nn2 gpu:h100:4(IDX:0-\n": "line 1: this is a table of nodes as `sinfo --noheader` prints",
    "\n{}": "line 1: this is JSON, an object with the keys none",
    '[{"a": 1}]': "line 1: this is JSON, a list of objects with the keys 'a', and of no known format",
    '\n{"a": 1,\n "b": }': "line 3: this begins as JSON, and is cut off or damaged",
    "[" * 9 + "\n": "line 1: no known format begins with",
    "[[{" + "[" * 99_999: "no known format begins with",
    '{"a":' + "[" * 99_999: "JSON",
    "host,cards,colour\nh0,8,blue\n": "line 1: this is CSV with the columns 'host', 'cards', 'colour', which no format",
}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_refusal_names_the_tool(text: str) -> None:
    said = refusal(discovery.read, text)
    assert TEXTS[text] in said
    assert ";" in said  # a remedy follows


def test_each_row_of_the_table_has_a_text() -> None:
    said = [refusal(discovery.read, text) for text in TEXTS]
    unseen = {
        tool.name for tool in unread_tools.tools() if not any(f"this is {tool.name}: " in one for one in said)
    }
    assert not unseen


@whole
def test_nodes_beside_a_pod_are_still_read() -> None:
    node = "kind: Node\nmetadata: {name: a}\nstatus:\n  capacity: {nvidia.com/gpu: 4}\n"
    assert discovery.read(f"{node}---\nkind: Pod\nmetadata: {{name: p}}\n").num_gpus == 4


@given(st.text(max_size=300))
def test_any_text_is_described_or_not(text: str) -> None:
    said = unread_tools.refusal(text)
    assert said is None or said.startswith("line ")


@pytest.mark.parametrize(
    "remark",
    [
        "DCGM is not installed here",
        "ps shows\n  PID of it",
        "see npu-smi",
        "x: Permission denied",
        "HCCS means",
    ],
)
def test_a_remark_does_not_name_the_tool(remark: str) -> None:
    said = refusal(discovery.read, f"{remark}\n| HL-SMI Version: 1.2 |\n")
    assert "`hl-smi` of Gaudi" in said


def test_a_manifest_beside_a_matrix_hides_nothing() -> None:
    matrix = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n"
    assert discovery.read(f"{matrix}\nkind: Pod\n").num_gpus == 2
