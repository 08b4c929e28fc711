# ruff: noqa: N802
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import topoplace as tp
from topoplace.discovery.nvidia import nvml_objects
from topoplace.topology import compare
from topoplace.topology.links.link_kinds import Link, LinkKind


class FakeLibrary:
    """What `pynvml` says of a machine, from plain tables; whatever is left out is not supported."""

    class NVMLError(Exception):
        pass

    def __init__(self, name: str, links: dict[tuple[int, int], int], *, count: int, **more: Any) -> None:
        self.name, self.count, self.more = name, count, more
        self.ends: list[list[tuple[int, str]]] = [[] for _ in range(count)]
        for (u, v), lanes in links.items():
            if v < count:
                self.ends[u] += [(0, self.address(v))] * lanes
                self.ends[v] += [(0, self.address(u))] * lanes
            else:
                self.ends[u] += [(2, f"switch{v}")] * lanes

    @staticmethod
    def address(i: int) -> str:
        return f"00000000:0{i}:00.0"

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, i: int) -> int:
        return i

    def nvmlDeviceGetName(self, handle: Any) -> bytes:
        return self.name.encode()

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        return "GPU-" + "-".join(map(str, handle if isinstance(handle, tuple) else [handle]))

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=self.address(handle))

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=80 * 10**9)

    def nvmlDeviceGetCpuAffinity(self, handle: int, words: int) -> list[int]:
        return [0b1111 if handle < 2 else 0b11110000] + [0] * (words - 1)

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        if link >= len(self.ends[handle]):
            raise self.NVMLError("not supported")
        return 1

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: int, link: int) -> int:
        return self.ends[handle][link][0]

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId=self.ends[handle][link][1])

    def nvmlDeviceGetTopologyCommonAncestor(self, a: int, b: int) -> int:
        return 50 if (a < 2) != (b < 2) else 20

    def __getattr__(self, function: str) -> Any:
        answers = self.more.get(function)

        def answer(*arguments: Any) -> Any:
            if answers is None:
                raise self.NVMLError("not supported")
            return answers(*arguments)

        return answer


def test_direct_links_and_pcie_paths() -> None:
    library = FakeLibrary(
        "Tesla P100-SXM2-16GB",
        {(0, 1): 2, (2, 3): 2},
        count=4,
        nvmlDeviceGetMaxPcieLinkGeneration=lambda _: 3,
        nvmlDeviceGetMaxPcieLinkWidth=lambda _: 16,
        nvmlDeviceGetRemappedRows=lambda i: (0, 0, 0, int(i == 3)),
    )
    topo = nvml_objects.topology_of(library)
    assert topo.link(0, 1) == Link(LinkKind.NVLINK1, 2, 40.0)
    assert topo.link(0, 2) == Link(LinkKind.SYSTEM, 1, 7.875)
    assert [gpu.socket for gpu in topo.gpus] == [0, 0, 1, 1]
    assert (topo.gpus[2].cpus, topo.gpus[2].uuid, topo.gpus[2].memory_gb) == ("4-7", "GPU-2", 80.0)
    assert [gpu.healthy for gpu in topo.gpus] == [True, True, True, False]
    assert topo.notes == ()


def test_pcie_switches_without_nvlink() -> None:
    topo = nvml_objects.topology_of(FakeLibrary("Tesla T4", {}, count=4))
    assert topo.link(0, 1) == Link(LinkKind.PCIE_BRIDGES, 1, 11.0)
    assert topo.notes == ("The PCIe speed of some GPUs is not given: 12 GB/s is assumed.",)


def test_switches_join_all_pairs_at_full_speed() -> None:
    links = {(gpu, 4 + switch): 3 for gpu in range(4) for switch in range(4)}
    topo = nvml_objects.topology_of(FakeLibrary("NVIDIA A100-SXM4-80GB", links, count=4))
    assert {topo.link(u, v) for u in range(4) for v in range(u)} == {Link(LinkKind.NVSWITCH, 12, 300.0)}
    assert len(topo.components) == 4


def test_slices_stand_for_their_gpu() -> None:
    shapes = {0: (3, 40_000), 1: (4, 40_000)}
    topo = nvml_objects.topology_of(
        FakeLibrary(
            "NVIDIA A100-SXM4-80GB",
            {(0, 1): 4},
            count=2,
            nvmlDeviceGetMigMode=lambda i: (int(i == 0), 0),
            nvmlDeviceGetMaxMigDeviceCount=lambda _: 7,
            nvmlDeviceGetMigDeviceHandleByIndex=lambda _, i: ("slice", i) if i in shapes else None,
            nvmlDeviceGetAttributes=lambda part: SimpleNamespace(
                gpuInstanceSliceCount=shapes[part[1]][0], memorySizeMB=shapes[part[1]][1]
            ),
        )
    )
    assert [gpu.name for gpu in topo.gpus] == ["GPU0/MIG0", "GPU0/MIG1", "GPU1"]
    assert [round(gpu.fraction, 3) for gpu in topo.gpus] == [0.429, 0.571, 1.0]
    assert [gpu.parent for gpu in topo.gpus] == ["GPU0", "GPU0", None]
    assert topo.link(0, 2).kind is LinkKind.HOST


def test_a_lost_gpu_is_said_and_the_others_are_read() -> None:
    library = FakeLibrary("Tesla T4", {}, count=3)

    def name(i: int) -> str:
        if i == 1:
            raise library.NVMLError("GPU is lost")
        return "Tesla T4"

    library.nvmlDeviceGetName = name  # type: ignore[attr-defined]
    topo = nvml_objects.topology_of(library)
    assert [gpu.name for gpu in topo.gpus] == ["GPU0", "GPU2"]
    assert topo.notes[0] == "A GPU is missing: GPU1, of which the driver says 'GPU is lost'."
    assert any(one.serious and "A GPU is missing" in one.why for one in compare.check(topo))


def test_no_gpu_is_refused() -> None:
    with pytest.raises(tp.TopologyError, match="no GPU: the library counts 0"):
        nvml_objects.topology_of(FakeLibrary("", {}, count=0))


@pytest.mark.parametrize(
    ("model", "assumed"), [("NVIDIA H100 80GB HBM3", ()), ("NVIDIA X9", (LinkKind.NVLINK,))]
)
def test_the_speed_of_unknown_nvlinks_is_marked_as_assumed(model: str, assumed: tuple[LinkKind, ...]) -> None:
    topology = nvml_objects.topology_of(FakeLibrary(model, {(0, 1): 4}, count=2))
    assert topology.assumed == assumed
    told = "The speed of NVLinks of NVIDIA X9 is not known: 25 GB/s is assumed." in topology.notes
    assert told == bool(assumed)
    assert nvml_objects.topology_of(FakeLibrary(model, {}, count=2)).assumed == ()
