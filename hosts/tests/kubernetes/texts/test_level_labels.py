"""Levels of the network in labels of nodes: of clouds, of Topograph, and of Topology objects of Kueue and KAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import topoplace as tp
from refusals import refusal
from topoplace import Fabric, TopologyError, discovery


def nodes(*labels: Mapping[str, str], resource: str = "nvidia.com/gpu", count: int = 8) -> str:
    """Return Node objects n0, n1 and so on with these labels."""
    return "".join(
        f"---\nkind: Node\nmetadata:\n  name: n{i}\n  labels:\n"
        + "".join(
            f'    {key}: "{value}"\n' for key, value in {"kubernetes.io/hostname": f"n{i}", **one}.items()
        )
        + f'status:\n  capacity:\n    {resource}: "{count}"\n    cpu: "64"\n'
        for i, one in enumerate(labels)
    )


def levels(text: str) -> dict[str, tuple[str | None, ...]]:
    found = discovery.read(text)
    fabric = found if isinstance(found, Fabric) else found.fabric
    assert fabric is not None
    return {level.name: level.domains for level in fabric.levels}


GKE = "cloud.google.com/gce-topology-"
AWS = "topology.k8s.aws/network-node-layer-"
OCI = "oci.oraclecloud.com/rdma."
TIER = "fabric.topograph.run/tier-"
COREWEAVE = "ds.coreweave.com/"
OLD = "network.topology.nvidia.com/"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            [{f"{GKE}block": "b", f"{GKE}subblock": s, f"{GKE}host": h} for s, h in ("xa", "xb", "yc")],
            {
                "host": ("b/x/a", "b/x/b", "b/y/c"),
                "subblock": ("b/x", "b/x", "b/y"),
                "block": ("b", "b", "b"),
            },
        ),
        (
            [{f"{AWS}1": "t", f"{AWS}2": m, f"{AWS}3": b} for m, b in ("xa", "xb", "yc")],
            {
                "layer3": ("t/x/a", "t/x/b", "t/y/c"),
                "layer2": ("t/x", "t/x", "t/y"),
                "layer1": ("t", "t", "t"),
            },
        ),
        (
            [
                {f"{OCI}hpc_island_id": "i", f"{OCI}network_block_id": n, f"{OCI}local_block_id": n}
                for n in "ab"
            ],
            {"local_block": ("i/a/a", "i/b/b"), "network_block": ("i/a", "i/b"), "hpc_island": ("i", "i")},
        ),
        (
            [{f"{TIER}0": leaf, f"{TIER}1": "s"} for leaf in "ab"],
            {"tier0": ("s/a", "s/b"), "tier1": ("s", "s")},
        ),
        (
            [{f"{OLD}leaf": leaf, f"{OLD}spine": "s", f"{OLD}core": "c"} for leaf in "ab"],
            {"leaf": ("c/s/a", "c/s/b"), "spine": ("c/s", "c/s"), "core": ("c", "c")},
        ),
        (
            [{f"{COREWEAVE}leafgroup": leaf, f"{COREWEAVE}superpod": "p"} for leaf in "ab"],
            {"leafgroup": ("p/a", "p/b"), "superpod": ("p", "p")},
        ),
        (
            [
                {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "site/rack": k}
                for k in "ab"
            ],
            {"rack": ("r/z/a", "r/z/b"), "zone": ("r/z", "r/z"), "region": ("r", "r")},
        ),
        ([{"example.com/colour": "red", "block-storage": "yes"}, {"site/pool": "rack"}], {}),
    ],
)
def test_levels_from_labels(
    labels: list[dict[str, str]], expected: dict[str, tuple[str | None, ...]]
) -> None:
    assert levels(nodes(*labels)) == expected


def test_nvlink_domains_of_topograph_aws_and_coreweave() -> None:
    for key in (
        f"{OLD}accelerator",
        f"{COREWEAVE}nvlink.domain",
        "accelerator.topograph.run/domain",
        "topology.k8s.aws/ultraserver-id",
    ):
        assert levels(nodes({key: "d1"}, {key: "d1"}, {key: "d2"})) == {"nvlink_domain": ("d1", "d1", "d2")}


def test_levels_are_noted_and_the_callers_replace_them() -> None:
    text = nodes({f"{GKE}block": "b", "site/room": "1"}, {f"{GKE}block": "b", "site/room": "2"})
    assert f"Levels are taken from labels, innermost first: block ({GKE}block)." in tp.read(text).notes
    found = tp.read(text, levels={"room": "site/room"})
    assert found.fabric is not None
    assert [(level.name, level.domains) for level in found.fabric.levels] == [("room", ("1", "2"))]


TOPOLOGY = """---
kind: Topology
apiVersion: {api}
metadata: {{name: default}}
spec:
  levels:
  - nodeLabel: "example.com/floor"
  - nodeLabel: "example.com/rack"
  - nodeLabel: "kubernetes.io/hostname"
"""


@pytest.mark.parametrize("api", ["kueue.x-k8s.io/v1beta2", "kai.scheduler/v1alpha1"])
def test_a_topology_of_kueue_or_kai_names_the_levels(api: str) -> None:
    text = TOPOLOGY.format(api=api)
    labelled = nodes(
        {"example.com/floor": "1", "example.com/rack": "r1", f"{GKE}block": "b"}, {"example.com/floor": "1"}
    )
    assert levels(text + labelled) == {"rack": ("1/r1", None), "floor": ("1", "1")}
    assert refusal(discovery.read, text) == (
        "a Topology names levels (example.com/rack, example.com/floor), and there is no node; add what "
        "`kubectl get nodes -o yaml` prints"
    )


def test_a_table_of_levels_is_a_fabric() -> None:
    text = (
        "NAME  STATUS  ROLES   AGE  VERSION  NETWORK-NODE-LAYER-1  NETWORK-NODE-LAYER-2\n"
        "n1    Ready   <none>  9d   v1.34.2  nn-a                  nn-b\n"
        "n2    Ready   <none>  9d   v1.34.2  nn-a                  nn-c\n"
    )
    found = discovery.read(text)
    assert isinstance(found, Fabric)
    assert found.machines == ("n1", "n2")
    assert levels(text) == {"layer2": ("nn-a/nn-b", "nn-a/nn-c"), "layer1": ("nn-a", "nn-a")}


@pytest.mark.parametrize(
    ("resource", "labels", "model"),
    [
        ("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}, "AMD_Instinct_MI300X"),
        ("gpu.intel.com/i915", {}, "i915"),
        ("google.com/tpu", {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"}, "tpu-v4-podslice"),
        ("huawei.com/Ascend910", {}, "Ascend910"),
        ("nvidia.com/gpu", {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "nvidia-h100-80gb"),
        ("habana.ai/gaudi", {}, None),
    ],
)
def test_accelerators_of_other_vendors(resource: str, labels: dict[str, str], model: str | None) -> None:
    found = tp.read(nodes(labels, labels, resource=resource, count=4))
    assert (found.num_machines, found.num_gpus, {gpu.model for gpu in found.gpus}) == (2, 8, {model})


DESCRIBED = """Name:               {name}
Labels:             kubernetes.io/hostname={name}
Capacity:
  nvidia.com/gpu:   4
Allocatable:
  nvidia.com/gpu:   4
Allocated resources:
  (Total limits may be over 100 percent, i.e., overcommitted.)
  Resource           Requests     Limits
  --------           --------     ------
  cpu                10 (5%)      20 (10%)
  nvidia.com/gpu     {used}            {used}
"""


def test_requests_of_pods_are_noted_and_known_where_they_are_all() -> None:
    text = DESCRIBED.format(name="n1", used=4) + "\n" + DESCRIBED.format(name="n2", used=0)
    found = tp.read(text)
    note = "GPUs that pods request are free here, because it is not given which they are: n1 (4)."
    assert note in found.notes
    assert discovery.busy_gpus(text, found) == (0, 1, 2, 3)
    some = DESCRIBED.format(name="n1", used=3)
    with pytest.raises(TopologyError, match="pods request 3 of 4 GPUs, but not which"):
        discovery.busy_gpus(some, tp.read(some))


def left_out(text: str) -> list[str]:
    return [note for note in discovery.read(text).notes if note.startswith("Labels that may be levels")]


AKS = "kubernetes.azure.com/"
SIZE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "model"),
    [
        ({"accelerator": "nvidia", f"{AKS}accelerator": "nvidia", SIZE: "Standard_ND96isr_H100_v5"}, "H100"),
        ({"accelerator": "nvidia", SIZE: "Standard_ND128isr_NDR_GB200_v6"}, "GB200"),
        ({"beta.kubernetes.io/instance-type": "Standard_NC64as_T4_v3"}, "T4"),
        ({"karpenter.azure.com/sku-gpu-name": "A100", SIZE: "Standard_ND96amsr_A100_v4"}, "A100"),
        (
            {"accelerator": "nvidia", "nvidia.com/gpu.product": "Tesla-T4", SIZE: "Standard_NC4as_T4_v3"},
            "Tesla-T4",
        ),
        ({"accelerator": "nvidia", SIZE: "Standard_NC6s_v3"}, None),
        ({"accelerator": "nvidia", SIZE: "Standard_NV6ads_A10_v5"}, None),
        ({"accelerator": "huawei-Ascend910"}, "huawei-Ascend910"),
    ],
)
def test_models_on_aks(labels: dict[str, str], model: str | None) -> None:
    found = tp.read(nodes(labels))
    assert {gpu.model for gpu in found.gpus} == {model}
    told = f"The model of GPUs is not given, but types of instances: {labels.get(SIZE)}; give a template."
    assert (told in found.notes) == (model is None)


def test_levels_of_aks() -> None:
    region = {"topology.kubernetes.io/region": "eastus", f"{AKS}agentpool": "gpu", "agentpool": "gpu"}
    zoned = [
        {**region, ZONE: f"eastus-{i}", "topology.disk.csi.azure.com/zone": f"eastus-{i}"} for i in (1, 2)
    ]
    assert levels(nodes(*zoned)) == {
        "zone": ("eastus/eastus-1", "eastus/eastus-2"),
        "region": ("eastus", "eastus"),
    }
    assert left_out(nodes(*zoned)) == []
    unzoned = [{**region, ZONE: zone, f"{AKS}ppg": ppg} for zone, ppg in ("0a", "1a", "0b")]
    assert levels(nodes(*unzoned)) == {
        "ppg": ("eastus/0/a", "eastus/1/a", "eastus/0/b"),
        "fault_domain": ("eastus/0", "eastus/1", "eastus/0"),
        "region": ("eastus",) * 3,
    }
    pools = [
        {**one, f"{AKS}agentpool": pool, "agentpool": pool}
        for one, pool in zip(zoned * 2, "aabb", strict=True)
    ]
    assert left_out(nodes(*pools)) == [
        f"Labels that may be levels are left out: {AKS}agentpool; give levels to read them."
    ]


@pytest.mark.parametrize(
    ("key", "values", "is_noted"),
    [
        ("example.com/cabinet", "aab", True),
        ("site/room-name", "aab", True),
        ("oci.oraclecloud.com/rdma.cluster_id", "aab", True),
        ("oci.oraclecloud.com/fault-domain", "aab", True),
        ("other.example.com/rack", "aab", True),
        ("other.example.com/rack", "xyy", False),
        ("example.com/cabinet", "aaa", False),
        ("example.com/colour", "aab", False),
        ("rdma.available", ("true", "true", "false"), False),
        ("topology.example.com/node", ("n0", "n1", "n2"), False),
    ],
)
def test_labels_that_look_like_levels_are_read_or_noted(
    key: str, values: Sequence[str], is_noted: bool
) -> None:
    racks = [{"example.com/rack": rack, key: value} for rack, value in zip("rss", values, strict=True)]
    noted = [f"Labels that may be levels are left out: {key}; give levels to read them."] if is_noted else []
    assert left_out(nodes(*racks)) == noted
    found = tp.read(nodes(*racks), levels={"rack": "example.com/rack"})
    assert not any(note.startswith("Labels that may be levels") for note in found.notes)
