"""What the samples of NVIDIA's tools say, and those of NCCL and RCCL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

import topoplace as tp
from samples import Expected
from topoplace.discovery.nccl import system_xml
from topoplace.discovery.nvidia import nvlink_status, topo_p2p
from topoplace.topology.links.link_kinds import PATHS

LinkKind = tp.LinkKind


def refused(parse: Callable[[bytes], object], message: str) -> Expected:
    def check(data: bytes) -> None:
        with pytest.raises(tp.TopologyError, match=message):
            parse(data)

    return Expected(f"refused: {message}", check)


def kinds(topology: tp.Topology) -> Counter[tuple[LinkKind, int]]:
    """How many pairs have links of each kind and number."""
    links = (topology.link(u, v) for v in range(topology.num_gpus) for u in range(v))
    return Counter((link.kind, link.lanes) for link in links)


# ---- NCCL and RCCL ---------------------------------------------------------------------------------------------

SLOW = tuple(PATHS.values())


def system(
    gpus: int,
    nics: int,
    pairs: Mapping[tuple[LinkKind, int], int],
    numa_nodes: str,
    *,
    switches: int = 0,
    note: str = "",
) -> Expected:
    """A file with `gpus` GPUs on the NUMA nodes `numa_nodes`, and the linked pairs; all other pairs go by PCIe."""

    def check(data: bytes) -> None:
        topology = system_xml.parse(data)
        found = kinds(topology)
        assert (topology.num_gpus, len(topology.nics)) == (gpus, nics)
        assert {key: count for key, count in found.items() if key[0] not in SLOW} == dict(pairs)
        assert found.total() == gpus * (gpus - 1) // 2
        names = [part.name for part in topology.components if part.kind is tp.ComponentKind.NUMA_NODE]
        assert names == [f"NUMA {number}" for number in numa_nodes]
        assert {gpu.numa_node for gpu in topology.gpus} <= set(map(int, numa_nodes))
        kinds_of_parts = Counter(part.kind for part in topology.components)
        assert kinds_of_parts[tp.ComponentKind.NVSWITCH] == switches
        assert any(note in text for text in ("", *topology.notes))
        assert all(gpu.cpus for gpu in topology.gpus)

    linked = ", ".join(f"{kind.name} x{lanes} on {count} pairs" for (kind, lanes), count in pairs.items())
    return Expected(f"{gpus} GPUs, {nics} NICs, {linked or 'PCIe only'}{f'; {note}' if note else ''}", check)


def skeleton(gpus: int, nics: int, numa_nodes: str, note: str = "", *, unknown: int = 12) -> Expected:
    """A file without NVLinks: `unknown` pairs of GPUs are on one socket, and the others have their path across."""
    pairs = {(LinkKind.UNKNOWN, 1): unknown}
    return system(gpus, nics, pairs, numa_nodes, note=note or "does not state which NVLinks")


def xgmi(gpus: int, nics: int, pairs: Mapping[int, int], numa_nodes: str, note: str = "") -> Expected:
    linked = {(LinkKind.XGMI, lanes): count for lanes, count in pairs.items()}
    return system(gpus, nics, linked, numa_nodes, note=note)


NCCL = {
    "nccl-aws-g5.48xl-8xA10G-06": refused(system_xml.parse, "line 14: pci 0000:00:16.0 has no class"),
    "nccl-aws-p4d-8xA100-07": skeleton(8, 4, "01"),
    "nccl-aws-p4de-8xA100-08": skeleton(8, 4, "01"),
    "nccl-azure-nc48v4-2xA100pcie-05": system(2, 1, {(LinkKind.NVLINK3, 12): 1}, "01"),
    "nccl-azure-ncv4-4xA100pcie-01": system(
        4,
        1,
        {},
        "0123",
        note="Links from GPU3 to itself (12, line 29) are not counted",
    ),
    "nccl-azure-ndv2-8xV100-02": skeleton(8, 1, "01"),
    "nccl-azure-ndv4-8xA100-03": skeleton(8, 8, "0123", unknown=4),
    "nccl-azure-ndv5-8xH100-04": skeleton(8, 8, "01"),
    "nccl-elasticflow-8xA100-13": system(8, 8, {(LinkKind.NVSWITCH, 12): 28}, "0123", switches=6),
    "nccl-oci-a100-flattened-11": skeleton(8, 8, "3175", unknown=4),
    "nccl-oci-a100-flattened-b4-12": skeleton(8, 8, "3175", "masks differ in length", unknown=4),
    "nccl-oci-h100-8xH100-09": system(8, 16, {(LinkKind.NVSWITCH, 18): 28}, "01", switches=4),
    "nccl-oci-h100-k8s-10": system(8, 16, {(LinkKind.NVSWITCH, 18): 28}, "01", switches=4),
    "ncclgraph-azure-ncv4-4xA100pcie-01": refused(system_xml.parse, "line 1: a NCCL graph"),
    "rccl-16p1h-01": xgmi(16, 8, {4: 8, 1: 16, 2: 4}, "0123"),
    "rccl-16p1hvm-02": xgmi(16, 8, {1: 16, 4: 8, 2: 4}, "0123"),
    "rccl-3ppcie-03": xgmi(3, 1, {}, "01"),
    "rccl-4p1h-04": xgmi(4, 1, {1: 4}, "0"),
    "rccl-4p2h-05": xgmi(8, 1, {1: 8}, "0"),
    "rccl-4p2h2nic-06": xgmi(8, 2, {1: 8}, "0"),
    "rccl-4p3l-07": xgmi(4, 2, {1: 6}, "0"),
    "rccl-4p3l2h-08": xgmi(8, 1, {1: 12}, "0123"),
    "rccl-4p3ln4-09": xgmi(8, 1, {1: 12}, "1235674"),
    "rccl-4p4h-10": xgmi(16, 16, {1: 24}, "1", "Several switches have the bus id 0000:c5:00.0"),
    "rccl-4p940-11": xgmi(4, 4, {1: 6}, "2301", "200000000 Mb/s, is not believed"),
    "rccl-8p1h-12": xgmi(8, 4, {4: 4, 2: 2, 1: 6}, "13"),
    "rccl-8p1h4-13": xgmi(8, 8, {4: 4, 1: 6, 2: 2}, "13"),
    "rccl-8p6l6nic-14": xgmi(8, 6, {1: 24}, "01"),
    "rccl-8p90a-15": xgmi(8, 1, {1: 12}, "0"),
    "rccl-8p940-16": xgmi(8, 8, {1: 28}, "01"),
    "rccl-8p940vm-17": xgmi(8, 8, {1: 28}, "01"),
    "rccl-8ppcie-18": xgmi(8, 1, {}, "0"),
    "rccl-8prome-19": xgmi(8, 1, {1: 8}, "01"),
    "rccl-8promen4-20": xgmi(8, 1, {1: 8}, "1235674"),
    "rccl-8pts1-21": xgmi(8, 2, {1: 8}, "0123"),
    "rccl-collnetn4-22": xgmi(8, 4, {1: 12}, "0123"),
}

# ---- nvidia-smi topo -m ----------------------------------------------------------------------------------------

KIND_OF_LABEL = {**PATHS, "SOC": LinkKind.SYSTEM}


def matrix(gpus: int, nics: int, pairs: str, *, numa: str = "", switch: bool = False) -> Expected:
    """A matrix with a number of pairs of each label, as in "NV1x8, SYSx12", and the NUMA node of each GPU."""

    def check(data: bytes) -> None:
        topology = tp.Topology.from_nvidia_smi(data)
        expected: Counter[tuple[LinkKind, int]] = Counter()
        for label, count in (word.split("x") for word in pairs.split(", ")):
            lanes = int(label[2:]) if label.startswith("NV") else 1
            nvlink_status = LinkKind.NVSWITCH if switch else LinkKind.NVLINK
            expected[KIND_OF_LABEL.get(label, nvlink_status), lanes] += int(count)
        assert (topology.num_gpus, len(topology.nics), kinds(topology)) == (gpus, nics, expected)
        nodes = "".join("-" if gpu.numa_node is None else str(gpu.numa_node) for gpu in topology.gpus)
        assert nodes == (numa or "-" * gpus)

    return Expected(f"{gpus} GPUs, {nics} NICs, {pairs}{' through NVSwitches' if switch else ''}", check)


def dgx1() -> Expected:
    lanes = {
        (0, 1): 1,
        (0, 2): 1,
        (0, 3): 2,
        (0, 4): 2,
        (1, 2): 2,
        (1, 3): 1,
        (1, 5): 2,
        (2, 3): 2,
        (2, 6): 1,
    }
    lanes |= {(3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}
    counted = matrix(8, 4, "NV1x8, NV2x8, SYSx12")

    def check(data: bytes) -> None:
        counted.check(data)
        topology = tp.Topology.from_nvidia_smi(data, "V100")
        assert {(u, v): link.lanes for u, v, link in topology.links if link.kind not in SLOW} == lanes
        assert sum(lanes.values()) == 24
        assert [nic.name for nic in topology.nics] == ["mlx5_0", "mlx5_2", "mlx5_1", "mlx5_3"]
        assert [gpu.socket for gpu in topology.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]

    return Expected(counted.says, check)


TOPO_M = {
    "2gpu-nv2-02": matrix(2, 0, "NV2x1"),
    "2gpu-phb-03": matrix(2, 0, "PHBx1"),
    "4gpu-soc-mlx4-01": matrix(4, 1, "PHBx2, SOCx4"),
    "4xK80-node-07": matrix(4, 0, "NODEx6"),
    "6gpu-soc-08": matrix(6, 0, "PHBx4, PIXx3, SOCx8"),
    "8xA100-compact-04": matrix(8, 0, "NV12x28", numa="00001111", switch=True),
    "8xH100-06": matrix(8, 0, "NV18x28", numa="00001111", switch=True),
    "8xH100-compact-05": matrix(8, 0, "NV18x28", numa="00001111", switch=True),
    "adroit-4xV100pcie-49": matrix(4, 1, "NODEx2, SYSx4", numa="0011"),
    "della-4xA100-51": matrix(4, 1, "NV4x6", numa="0011"),
    "dgx1v100-ib-09": dgx1(),
    "litgpt-2x3090-48": matrix(2, 0, "NV1x1", numa="00"),
    "litgpt-4gpu-nv12-44": matrix(4, 0, "NV12x6", switch=True),
    "litgpt-4gpu-nv1pairs-45": matrix(4, 0, "NV1x2, SYSx4"),
    "litgpt-4gpu-phb-46": matrix(4, 0, "PHBx6", numa="0000"),
    "litgpt-8xA100-10nic-47": matrix(8, 10, "NV12x28", numa="00001111", switch=True),
    "traverse-ac922-50": matrix(4, 4, "NV3x2, SYSx4", numa="0088"),
}

# ---- nvidia-smi topo -p2p and nvlink ---------------------------------------------------------------------------


def peers(gpus: int, status: str) -> Expected:
    """A matrix with one status for all pairs."""

    def check(data: bytes) -> None:
        access = topo_p2p.read(data)
        rows = [["X" if u == v else status for v in range(gpus)] for u in range(gpus)]
        assert access.statuses == tuple(map(tuple, rows))
        kind = LinkKind.UNKNOWN if status == "OK" else LinkKind.HOST
        assert kinds(topo_p2p.parse(data)) == {(kind, 1): gpus * (gpus - 1) // 2}

    return Expected(f"{gpus} GPUs, {status} for all {gpus * (gpus - 1) // 2} pairs", check)


PEERS = {
    "2xL4-02": peers(2, "CNS"),
    "8gpu-pcie-03": peers(8, "OK"),
    "8xH100-01": peers(8, "OK"),
}
NVLINKS = {
    "h100-elided-01": refused(
        nvlink_status.parse, r"line 3: \[\.\.\.\] marks omitted text; give the complete text"
    )
}

EXPECTED: dict[str, Expected] = {
    **{f"topop2p-{name}.txt": expected for name, expected in PEERS.items()},
    **{f"nvlinks-{name}.txt": expected for name, expected in NVLINKS.items()},
    **{f"{name}.xml": expected for name, expected in NCCL.items()},
    **{f"topom-{name}.txt": expected for name, expected in TOPO_M.items()},
}
