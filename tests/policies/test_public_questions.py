"""Questions about placements that users asked in public: on small machines of the same shape, and on their own texts.

Number 26, a GPU alone on its socket, and others on whole clusters are in `test_least_time.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import topoplace as tp
from distributions import whole
from topoplace import discovery
from topoplace.policies import LeastTime

H100 = tp.machines.get("dgx-h100")
Classes = Callable[[int, int], str]


def matrix(classes: Classes, sockets: str, *, nic_class: Classes | None = None) -> str:
    """Write the table of `nvidia-smi topo -m` of a machine.

    Args:
        classes: The class of the path between two GPUs.
        sockets: The NUMA node of each GPU, a digit each.
        nic_class: The class of the path of a GPU to an adapter, of which there are as many.
    """
    n = len(sockets)
    nics = n if nic_class else 0
    names = [f"GPU{i}" for i in range(n)] + [f"NIC{i}" for i in range(nics)]
    lines = ["\t".join(["", *names, "CPU Affinity", "NUMA Affinity"])]
    for i, name in enumerate(names):
        cells = [" X " if i == j else _path(i, j, n, classes, nic_class) for j in range(len(names))]
        node = int(sockets[i]) if i < n else 0
        near = [f"{8 * node}-{8 * node + 7}", str(node)] if i < n else []
        lines.append("\t".join([name, *cells, *near]))
    return "\n".join(lines) + "\n"


def _path(i: int, j: int, n: int, classes: Classes, nic_class: Classes | None) -> str:
    if i < n and j < n:
        return classes(min(i, j), max(i, j))
    if nic_class is None or (i >= n and j >= n):
        return "SYS"
    return nic_class(min(i, j), max(i, j) - n)


def by_halves(inside: Classes, across: str = "SYS") -> Classes:
    """Return classes of eight GPUs of which four are on each socket."""
    return lambda u, v: inside(u, v) if u // 4 == v // 4 else across


def pairs_in_fours(of_pair: str, others: str) -> Classes:
    return by_halves(lambda u, v: of_pair if u // 2 == v // 2 else others)


def gres(sockets: str) -> str:
    """Write the lines of `gres.conf` of a node, with the cores of each GPU and without links."""
    lines = [
        f"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia{i} Cores={16 * int(node)}-{16 * int(node) + 15}"
        for i, node in enumerate(sockets)
    ]
    return "\n".join(lines) + "\n"


def busy(topology: tp.Topology, *gpus: int) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    if gpus:
        cluster.allocate("busy", gpus)
    return cluster


def chosen(job: tp.JobGraph, cluster: tp.Cluster) -> tuple[int, ...] | None:
    placement = tp.place(job, cluster)
    return placement and tuple(sorted(placement.gpus))


def text_of(shared: Path, name: str) -> bytes:
    path = shared / "data" / "public" / name
    if not path.exists():
        pytest.skip(f"the text {name} is not on this machine")
    return path.read_bytes()


# ---- on one machine ------------------------------------------------------------------------------------------

PAIRS_OF_NODE = by_halves(lambda u, v: "PIX" if u // 2 == v // 2 else "NODE")
ON_ONE_MACHINE = {
    "11, two sockets of two": (
        matrix(lambda u, v: "PIX" if u // 2 == v // 2 else "SYS", "0011"),
        [0],
        2,
        [{2, 3}],
    ),
    "12, pairs of PIX in fours of PHB": (
        matrix(pairs_in_fours("PIX", "PHB"), "00001111"),
        [0],
        4,
        [{4, 5, 6, 7}],
    ),
    "13, all SYS, and the NUMA nodes differ": (
        matrix(lambda u, v: "SYS", "00001111"),
        [0],
        4,
        [{4, 5, 6, 7}],
    ),
    "23, two of four by their cores": (gres("0011"), [0], 2, [{2, 3}]),
    "23, four of eight by their cores": (gres("00001111"), [0, 1], 4, [{4, 5, 6, 7}]),
    "24, four NUMA nodes behind NVSwitches": (matrix(lambda u, v: "NV18", "00112233"), [0], 2, [{2, 3}]),
    "30, pairs of PIX among those of NODE": (
        matrix(PAIRS_OF_NODE, "00001111"),
        [0],
        2,
        [{2, 3}, {4, 5}, {6, 7}],
    ),
    "30, pairs of PIX among those of PXB": (
        matrix(pairs_in_fours("PIX", "PXB"), "00001111"),
        [0],
        2,
        [{2, 3}, {4, 5}, {6, 7}],
    ),
}
"""A text, the GPUs that are busy, how many are wanted, and the sets that are right."""


@whole
@pytest.mark.parametrize("question", ON_ONE_MACHINE)
@pytest.mark.parametrize("pattern", [tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.clique])
def test_the_nearest_gpus_are_taken(question: str, pattern: Callable[[int], tp.JobGraph]) -> None:
    text, taken, size, right = ON_ONE_MACHINE[question]
    topology = discovery.read(text.encode())
    assert isinstance(topology, tp.Topology)
    placement = tp.place(pattern(size), busy(topology, *taken))
    assert placement is not None
    assert set(placement.gpus) in right
    assert placement.optimal


PUBLIC: dict[str, tuple[list[int], int, list[set[int]]]] = {
    "place-14-4gpu-2sockets.txt": ([0], 2, [{2, 3}]),
    "place-15-8gpu-pix-phb-sys.txt": ([0], 4, [{4, 5, 6, 7}]),
    "gres-01-bcm.conf": ([0], 2, [{2, 3}]),
    "gres-07-dgx64.conf": ([0, 1], 4, [{4, 5, 6, 7}]),
    "topom-22-5gpu-mixed-5090-4090.txt": ([], 4, [{1, 2, 3, 4}]),
    "topom-23-8gpu-pix-pairs-nonuma.txt": ([0], 2, [{2, 3}, {4, 5}, {6, 7}]),
    "rocm-03-4gpu-pcie-2numa-60.txt": ([0], 2, [{2, 3}]),
    "rocm-06-numa-only.txt": ([0], 4, [{4, 5, 6, 7}]),
    "gres-08b-deepops-repaired.conf": ([0], 2, [{2, 3}, {4, 5}, {6, 7}]),
}


@whole
@pytest.mark.parametrize("name", PUBLIC)
def test_the_nearest_gpus_of_public_texts_are_taken(name: str, shared: Path) -> None:
    taken, size, right = PUBLIC[name]
    topology = discovery.read(text_of(shared, name))
    assert isinstance(topology, tp.Topology)
    placement = tp.place(tp.JobGraph.ring(size), busy(topology, *taken))
    assert placement is not None
    assert set(placement.gpus) in right


def test_18_the_adapter_beside_a_gpu_goes_with_it() -> None:
    near = matrix(lambda u, v: "NV18", "00112233", nic_class=lambda g, n: "PIX" if g == n ^ 1 else "NODE")
    topology = tp.Topology.from_nvidia_smi(near)
    placement = tp.place(tp.JobGraph.ring(8), tp.Cluster(topology))
    assert placement is not None
    assert {binding.gpu: binding.nic for binding in placement.bindings} == {
        gpu: f"NIC{gpu ^ 1}" for gpu in range(8)
    }


def test_19_a_lost_gpu_is_missed_and_the_numbers_of_the_others_stay() -> None:
    text = (
        "Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error\n"
        "\tGPU0\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tSYS\tSYS\t0-7\t0\n"
        "GPU2\tSYS\t X \tPIX\t8-15\t1\n"
        "GPU3\tSYS\tPIX\t X \t8-15\t1\n"
    )
    topology = tp.Topology.from_nvidia_smi(text)
    assert any("A GPU is missing: GPU1" in note for note in topology.notes)
    placement = tp.place(tp.JobGraph.ring(2), tp.Cluster(topology))
    assert placement is not None
    assert [binding.local_gpu for binding in placement.bindings] == [2, 3]


def test_28_one_socket_can_be_required() -> None:
    topology = tp.Topology.from_nvidia_smi(matrix(PAIRS_OF_NODE, "00001111"))
    cluster = busy(topology, 0, 4)
    assert chosen(tp.JobGraph.ring(3).with_(within="socket"), cluster) == (1, 2, 3)
    assert chosen(tp.JobGraph.ring(2).with_(within="socket"), cluster) == (2, 3)
    assert chosen(tp.JobGraph.ring(4), cluster) is not None
    assert chosen(tp.JobGraph.ring(4).with_(within="socket"), cluster) is None
    refusal = (
        tp.policies.get("least-time").explain(tp.JobGraph.ring(5).with_(within="socket"), cluster).refusal
    )
    assert refusal is not None
    assert refusal.permanent
    assert "0 of 1 groups of 5 fit within a socket" in refusal.reason


@whole
@pytest.mark.parametrize("policy", ["least-time", "topo-aware", "mapa-greedy", "best-fit", "fgd"])
def test_28_every_policy_keeps_the_socket(policy: str) -> None:
    cluster = busy(tp.machines.get("l40s-8"), 0)
    placement = tp.policies.get(policy).place(tp.JobGraph.ring(4).with_(within="socket"), cluster)
    assert placement is not None
    assert set(placement.gpus) == {4, 5, 6, 7}


CPUS = {
    "Zen 5": 'vendor="AuthenticAMD" familyid="191" modelid="2"',
    "Zen 3": 'vendor="AuthenticAMD" familyid="143" modelid="1"',
    "Xeon": 'vendor="GenuineIntel" familyid="6" modelid="207"',
    "unknown": "",
}


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("sm", ["90", "120"])
def test_29_gpus_of_two_sockets_can_be_used(cpu: str, sm: str) -> None:
    def gpu(number: int) -> str:
        bus = f"0000:{16 * number + 16:02x}:00.0"
        card = f'<gpu dev="{number}" sm="{sm}" rank="{number}" gdr="1"/>'
        speed = 'link_speed="32.0 GT/s PCIe" link_width="16"'
        return f'<pci busid="{bus}" class="0x030200" vendor="0x10de" {speed}>{card}</pci>'

    sockets = "".join(
        f'<cpu numaid="{node}" arch="x86_64" {CPUS[cpu]}>{gpu(2 * node)}{gpu(2 * node + 1)}</cpu>'
        for node in (0, 1)
    )
    topology = tp.Topology.from_nccl_xml(f'<system version="1">{sockets}</system>')
    near, far = (tp.collective.ring_bandwidth(topology, gpus) for gpus in ((0, 1), (0, 2)))
    assert 0 < far <= near
    assert chosen(tp.JobGraph.ring(2), busy(topology, 0)) == (2, 3)
    across = tp.place(tp.JobGraph.ring(2), busy(topology, 0, 3))
    assert across is not None
    assert 0 < across.time < 1


# ---- parts of GPUs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(4, 2, 1), (1, 2, 4), (2, 1, 4)])
def test_4_slices_fit_in_any_order(order: Sequence[int]) -> None:
    one = tp.Topology.from_links(1, [], 12.0)
    gpu = replace(one.gpus[0], model="A100-SXM4-40GB", memory_gb=40.0)
    cluster = tp.Cluster(replace(one, gpus=(gpu,)))
    policy = LeastTime().with_reslicing()
    for units in order:
        memory = {1: 5, 2: 10, 4: 20}[units]
        job = tp.JobGraph.independent(1).with_(mig=f"{units}g.{memory}gb")
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate(f"slice of {units}", placement)


def test_17_halves_of_gpus_fill_all_cards() -> None:
    jobs = [tp.JobGraph.independent(1).with_(gpu_fraction=0.5)] * 16
    placements = tp.place_all(jobs, tp.Cluster(H100), policy="least-time")
    assert Counter(placement.gpus[0] for placement in placements if placement) == dict.fromkeys(range(8), 2)


def shared_gpus(*used: float) -> tp.Cluster:
    cluster = tp.Cluster(tp.Topology.from_links(len(used), [], 12.0))
    for gpu, share in enumerate(used):
        if share:
            cluster.allocate(f"job {gpu}", [gpu], tp.JobGraph.independent(1).with_(gpu_fraction=share))
    return cluster


def test_20_a_job_that_is_spread_takes_the_emptiest_gpu() -> None:
    job = tp.JobGraph.independent(1).with_(gpu_fraction=0.1)
    assert chosen(job, shared_gpus(0.9, 0.7, 0.3, 0.1)) == (0,)
    cluster = shared_gpus(0.9, 0.7, 0.3, 0.1)
    spread = job.with_(spread="gpu")
    for number, expected in enumerate((3, 3, 2, 3)):  # 0.9, 0.8, 0.7 and 0.7 are left; ties to the lowest GPU
        placement = tp.place(spread, cluster)
        assert placement is not None
        assert placement.gpus == (expected,)
        cluster.allocate(f"replica {number}", placement)
    assert chosen(job.with_(spread="gpu"), shared_gpus(0.5, 0.0, 0.5)) == (1,)


def test_20_the_emptiest_gpu_may_be_on_another_machine() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(H100, 2))
    half = tp.JobGraph.independent(8).with_(gpu_fraction=0.5)
    cluster.allocate("here", range(8), half)
    cluster.allocate("there", range(8, 16), half.with_(gpu_fraction=0.25))
    job = tp.JobGraph.independent(1).with_(gpu_fraction=0.1)
    assert chosen(job, cluster) == (0,)
    assert chosen(job.with_(spread="gpu"), cluster) == (8,)


@whole
def test_20_a_policy_that_packs_shares_refuses_to_spread_them() -> None:
    job = tp.JobGraph.independent(1).with_(gpu_fraction=0.1, spread="gpu")
    with pytest.raises(ValueError, match=r"^spread = 'gpu' cannot be honoured: fgd does not choose"):
        tp.policies.get("fgd").place(job, shared_gpus(0.5, 0.0))
    whole = tp.policies.get("fgd").place(job.with_(gpu_fraction=1.0), shared_gpus(0.5, 0.0))
    assert whole is not None
    assert whole.gpus == (1,)


# ---- on a cluster --------------------------------------------------------------------------------------------


def clustered(machine: tp.Topology, *levels: tuple[str, str]) -> tp.Cluster:
    """Return machines below levels; a level is its name and the domain of each machine, a letter each."""
    names = tuple(f"m{i}" for i in range(len(levels[0][1])))
    fabric = tp.Fabric(names, tuple(tp.Level(name, tuple(domains)) for name, domains in levels))
    return tp.Cluster(tp.Topology.cluster(machine, fabric=fabric))


def domains(placement: tp.Placement | None, level: str) -> list[tuple[str | None, int]]:
    """Return how many GPUs of a placement each domain of a level has."""
    assert placement is not None
    topology = placement.topology
    found = next(one for one in topology.levels if one.name == level).domains
    counts = Counter(found[int(topology.machine_of[gpu])] for gpu in placement.gpus)
    return sorted(counts.items(), key=str)


TRAY = tp.Topology.from_links(4, [(u, v, 900.0) for u in range(4) for v in range(u)], default=12.0)


@pytest.mark.parametrize("pattern", [tp.JobGraph.ring, tp.JobGraph.independent])
def test_5_segments_of_twelve_trays_on_racks_of_seventeen(pattern: Callable[[int], tp.JobGraph]) -> None:
    cluster = clustered(TRAY, ("rack", "a" * 17 + "b" * 17 + "c" * 17))
    placement = tp.place(pattern(144).grouped(48, within="rack"), cluster)
    assert domains(placement, "rack") == [("a", 48), ("b", 48), ("c", 48)]


def test_5_the_public_cluster(shared: Path) -> None:
    cluster = tp.Cluster(tp.Topology.from_json(text_of(shared, "place-05-cluster.json").decode()))
    placement = tp.place(tp.JobGraph.ring(144).grouped(48, within="block"), cluster)
    assert [count for _, count in domains(placement, "block")] == [48, 48, 48]


@pytest.mark.parametrize("job", [tp.JobGraph.ring(8), tp.JobGraph.ring(16), tp.JobGraph.independent(1)])
@pytest.mark.parametrize("taken", [0, 4])
def test_9_a_partly_used_leaf_is_preferred(job: tp.JobGraph, taken: int) -> None:
    cluster = clustered(H100, ("leaf", "aaaabbbb"), ("spine", "ssssssss"))
    cluster.allocate("other", range(8 * taken, 8 * taken + 8))
    leaf = "b" if taken else "a"
    assert domains(tp.place(job, cluster), "leaf") == [(leaf, job.num_tasks)]


def test_10_a_hard_limit_is_refused_with_its_reason() -> None:
    cluster = clustered(H100, ("tier1", "aabbcc"), ("tier2", "xxxx--"), ("tier3", "tttttt"))
    assert domains(tp.place(tp.JobGraph.ring(16).with_(within="tier1"), cluster), "tier1")[0][1] == 16
    job = tp.JobGraph.ring(24).with_(within="tier1")
    assert tp.place(job, cluster) is None
    refusal = tp.policies.get("least-time").explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.reason == (
        "never fits: needs 24 GPUs within one tier1, the idle cluster has no such machines"
    )


def test_16_two_halves_are_one_move_from_a_machine() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(H100, 2))
    cluster.allocate("a", range(4), tp.JobGraph.ring(4))
    cluster.allocate("b", range(8, 12), tp.JobGraph.ring(4))
    job = tp.JobGraph.ring(8).with_(within="machine")
    assert tp.place(job, cluster) is None
    plan = tp.make_room(job, cluster, policy="least-time")
    assert plan is not None
    assert len(plan.move) == 1


def gke_node(name: str) -> str:
    """Write a node of which the name says block, subblock and host."""
    block, subblock, _ = name.split("-")
    label = "cloud.google.com/gce-topology"
    return f"""- apiVersion: v1
  kind: Node
  metadata:
    name: {name}
    labels:
      cloud.google.com/gke-accelerator: nvidia-h100-80gb
      {label}-block: {block}
      {label}-subblock: {block}-{subblock}
      {label}-host: {name}
  status:
    allocatable:
      nvidia.com/gpu: '8'
"""


@whole
def test_22_labels_of_blocks_count_without_being_named() -> None:
    nodes = [gke_node(f"b{block}-s{sub}-h{host}") for block in (1, 2) for sub in (1, 2) for host in (1, 2)]
    topology = discovery.read(("apiVersion: v1\nkind: List\nitems:\n" + "".join(nodes)).encode())
    assert isinstance(topology, tp.Topology)
    placement = tp.place(tp.JobGraph.ring(32), busy(topology, *range(8)))
    assert domains(placement, "block") == [("b2", 32)]


@whole
def test_22_the_public_nodes(shared: Path) -> None:
    topology = discovery.read(text_of(shared, "k8s-03-gke-h100-blocks.yaml"))
    assert isinstance(topology, tp.Topology)
    placement = tp.place(tp.JobGraph.ring(32), busy(topology, *range(8)))
    assert [count for _, count in domains(placement, "block")] == [32]


def test_25_a_leader_has_other_needs_than_its_workers() -> None:
    topology = clustered(H100, ("rack", "aabb")).topology
    cluster = tp.Cluster(topology, hosts=tp.HostResources(cpus=64, memory_gb=512.0))
    cluster.allocate("other", [0, 1])
    leader = tp.JobGraph.independent(1).with_(cpus=48, memory_gb=256.0)
    workers = tp.JobGraph.ring(14).grouped(7, within="machine").with_(cpus=14)
    found = tp.place_all([workers, leader], cluster, policy="least-time", together="rack")
    assert domains(found[0], "rack") == [("b", 14)]
    assert domains(found[1], "rack") == [("b", 1)]


def test_25_a_leader_of_one_gpu_and_workers_of_several_are_one_job() -> None:
    cluster = clustered(H100, ("rack", "aaabbb"))
    cluster.allocate("other", range(4))
    job = tp.JobGraph.joined(
        [tp.JobGraph.independent(1), tp.JobGraph.ring(24).grouped(8, within="machine")],
        {(0, 1): 1.0},
    )
    placement = tp.place(job, cluster)
    assert placement is not None
    machines = [gpu // 8 for gpu in placement.gpus]
    assert [len(set(machines[i : i + 8])) for i in (1, 9, 17)] == [1, 1, 1]
