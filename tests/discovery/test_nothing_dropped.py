"""What a text tells is kept, noted, or refused with the line and a remedy; nothing is dropped in silence."""

from __future__ import annotations

import pytest

import topoplace as tp
from distributions import whole
from refusals import refusal
from topoplace import discovery

UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{i}" for i in range(3)]
LISTED = "".join(f"GPU {i}: NVIDIA A100-SXM4-40GB (UUID: {UUIDS[i]})\n" for i in range(2))
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-31\t0\nGPU1\tNV4\t X \t32-63\t1\n"
LEGEND = (
    "\nLegend:\n\n  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA n\nodes (e.g., QPI/UPI)\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
NUMA = (
    "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 100 MB\nnode distances:\nnode   0\n  0:  10\n"
)
LINKS = (
    f"GPU 0: NVIDIA H100 (UUID: {UUIDS[0]})\n\t Link 0: 25 GB/s\n"
    f"GPU 1: NVIDIA H100 (UUID: {UUIDS[1]})\n\t Link 0: 25 GB/s\n"
)
WEIGHTS = "=== ROCm System ===\n=== Weight between two GPUs ===\n GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n"
PEERS = " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"
LOST = "Unable to determine the device handle for GPU1: Unknown Error\n"


def read(text: str) -> tp.Topology:
    topology = tp.read(text)
    assert isinstance(topology, tp.Topology)
    return topology


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (LISTED + LOST, "A GPU is missing: GPU1, of which the tool says 'Unknown Error'."),
        (LOST + LISTED, "A GPU is missing: GPU1, of which the tool says 'Unknown Error'."),
        (LOST + MATRIX, "A GPU is missing: GPU1, of which the tool says 'Unknown Error'."),
        (LISTED + "GP", "Lines from which nothing is read: line 3: 'GP'."),
        (LISTED + f"GPU 2: NVIDIA A100-SXM4-40GB\n{LOST}", "No UUID is given for GPU2."),
        (
            LISTED.replace(UUIDS[1], UUIDS[0]),
            f"One UUID, '{UUIDS[0]}', is given to GPU0, GPU1, and left out.",
        ),
        (
            LISTED.replace(UUIDS[1], UUIDS[0]) + MATRIX,
            f"One UUID, '{UUIDS[0]}', is given to GPU0, GPU1, and left out.",
        ),
        (
            LINKS.replace(UUIDS[1], UUIDS[0]),
            f"One UUID, '{UUIDS[0]}', is given to GPU0, GPU1, and left out.",
        ),
        (LINKS + LOST, "A GPU is missing: GPU1, of which the tool says 'Unknown Error'."),
        (
            f"{LISTED}GPU 2: NVIDIA A100-SXM4-40GB (UUID: {UUIDS[2]})\n{MATRIX}",
            "Listed without a row of the matrix, and left out: GPU2.",
        ),
        (LISTED.split("\n")[0] + "\n" + MATRIX, "In the matrix, and not listed next to it: GPU1."),
        (
            LISTED.replace("GPU 1", "  MIG 3g.20gb     Device  0: (UUID: MIG-1)\nGPU 1") + MATRIX,
            "MIG slices, 1 from line 2 on, are left out: the matrix is of whole GPUs, "
            "and the output of `nvidia-smi -L` alone gives the slices; no job can have these whole, and they are "
            "marked unhealthy: GPU0 (1).",
        ),
        (
            "0, NVIDIA A100-SXM4-40GB, 40960 MiB\n" + MATRIX,
            "Lines from which nothing is read: line 1: '0, NVIDIA A100-SXM4-40GB, 40960 MiB'.",
        ),
        (
            "\tGPU0\tmlx5_0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-7\t0\nmlx5_0\tPIX\t X \t0-7\t0\n",
            "Affinities of network adapters, not kept: mlx5_0 0-7 0.",
        ),
        (
            WEIGHTS + "ERROR: GPU[1]: not supported\n",
            "Lines from which nothing is read: line 6: 'ERROR: GPU[1]: not supported'.",
        ),
        (PEERS + "GPU 1 is broken.\n", "Lines from which nothing is read: line 4: 'GPU 1 is broken.'."),
        (MATRIX + "GPU 1 is broken.\n", "Lines from which nothing is read: line 4: 'GPU 1 is broken.'."),
        (
            MATRIX + LEGEND + "a\nb\nc\nd\n",
            "Lines from which nothing is read: line 11: 'a'; line 12: 'b'; line 13: 'c'; 1 more.",
        ),
        (
            MATRIX + LEGEND + 20 * "\n" + NUMA,
            "The text also has the output of numactl --hardware, which is left out.",
        ),
    ],
)
def test_what_is_left_out_is_noted(text: str, note: str) -> None:
    assert note in read(text).notes


@pytest.mark.parametrize(
    ("text", "command"),
    [(LISTED, "-L"), (MATRIX, "topo -m"), (LISTED + MATRIX + LEGEND, "topo -m"), (LINKS, "nvlink -s")],
    ids=range(4),
)
def test_a_text_as_printed_leaves_nothing_out(text: str, command: str) -> None:
    for prompt in ("", f"user@node:~$ nvidia-smi {command}\n"):
        assert not any("nothing is read" in note for note in read(prompt + text + "user@node:~$ \n").notes)


@whole
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{LISTED}GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-0000",
            "line 3: 'GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-0000' is cut off, or not as `nvidia-smi` prints it; "
            "give the complete line",
        ),
        (
            LISTED + "GPU 2: NVIDIA A100",
            "line 3: the text ends before the UUID of GPU2; give the complete text",
        ),
        (LINKS + "\t [snip]\n", "line 5: [snip] marks omitted text; give the complete text"),
        (
            LISTED + "(... truncated 4 lines)\n",
            "line 3: (... truncated 4 lines) marks omitted text; give the complete text",
        ),
        (
            "nothing\nthat we know",
            "line 1: no known format begins with 'nothing'; give the complete output of a tool as printed, such as "
            "`nvidia-smi topo -m`; `topoplace show --list formats` lists what is read",
        ),
        (
            LISTED + "GPU 2",
            "line 3: 'GPU 2' is cut off, or not as `nvidia-smi` prints it; give the complete line",
        ),
        (
            LINKS + "GPU 2: NVIDIA H100 (UU",
            "line 5: 'GPU 2: NVIDIA H100 (UU' is cut off, or not as `nvidia-smi` prints it; give the complete line",
        ),
        (
            LISTED + "  MIG 3g.20gb     Device  0: (UUI",
            "line 3: 'MIG 3g.20gb     Device  0: (UUI' is not a slice; give the complete line",
        ),
        (
            "Name=gpu File=/dev/nvidia[0-3]\nName=gpu File=/dev/nvidia[3-5]\n",
            "line 2: File '/dev/nvidia3' is that of line 1 too; each GPU has its own file",
        ),
        (
            "NodeName=n[0-1] Name=gpu File=/dev/nvidia0\nSwitchName=s0 Nodes=n[0-1]\n",
            "line 2: 'SwitchName' is not a key of this file; it is one of topology.conf: "
            "give each file as its own text",
        ),
    ],
)
def test_what_is_cut_off_or_contradicts_itself_is_refused(text: str, message: str) -> None:
    assert refusal(discovery.read, text) == message


def test_models_that_differ_are_kept_beside_a_matrix() -> None:
    topology = read(LISTED.replace("A100-SXM4-40GB", "H100 80GB HBM3", 1) + MATRIX)
    assert [gpu.model for gpu in topology.gpus] == ["H100", "A100"]
    assert (topology.bandwidth(0, 1), topology.assumed) == (100.0, ())
    odd = read(LISTED.replace("NVIDIA A100-SXM4-40GB", "Odd One", 1) + MATRIX)
    assert [gpu.model for gpu in odd.gpus] == ["Odd One", "A100"]
    assert odd.assumed


def test_gpus_of_one_machine_have_names_and_uuids_of_their_own() -> None:
    for repeated in ({"name": "G"}, {"name": "G", "machine": "m"}):
        with pytest.raises(
            tp.TopologyError, match=r"gpus\[1\].name = 'G' is that of gpus\[0\] too, on machine 'm"
        ):
            tp.Topology([tp.Gpu(i, **repeated) for i in range(2)])
    with pytest.raises(tp.TopologyError, match=r"gpus\[2\].uuid = 'U' is that of gpus\[0\] too"):
        tp.Topology([tp.Gpu(i, f"G{i}", uuid=uuid) for i, uuid in enumerate(("U", None, "U"))])
    assert tp.Topology([tp.Gpu(i, "G", machine=f"m{i}", uuid="U") for i in range(2)]).num_machines == 2
