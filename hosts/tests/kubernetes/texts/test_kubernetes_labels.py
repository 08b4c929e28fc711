from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from refusals import refusal
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.kubernetes.texts import kubernetes_labels

parse = kubernetes_labels.parse
LEVELS = {"rack": "example.com/rack", "block": "example.com/block"}


@pytest.fixture(scope="module")
def nodes(repository: Path) -> str:
    return (repository / "tests/data/k8slabels-nodes.yaml").read_text("utf-8")


@pytest.fixture(scope="module")
def mixed(repository: Path) -> str:
    return (repository / "tests/data/k8slabels-mig-mixed.txt").read_text("utf-8")


def fabric_of(topology: tp.Topology) -> Fabric:
    assert topology.fabric is not None
    return topology.fabric


def node(name: str = "n", capacity: dict[str, str] | None = None, **labels: str) -> str:
    """One node as JSON; labels are those of nvidia.com, with _ for . in their names."""
    named = {"nvidia.com/" + key.replace("_", "."): value for key, value in labels.items()}
    status = {"capacity": capacity or {}, "allocatable": {}}
    return json.dumps({"kind": "Node", "metadata": {"name": name, "labels": named}, "status": status})


def test_cliques_are_told_apart_by_cluster_and_clique(nodes: str) -> None:
    assert kubernetes_labels.recognised(nodes)
    topology = parse(nodes)
    assert (topology.num_gpus, topology.num_machines) == (12, 3)
    level, *others = fabric_of(topology).levels
    assert (level.name, level.kind) == ("nvlink_domain", LinkKind.NVSWITCH)
    assert level.domains[0] == level.domains[2] != level.domains[1]
    assert [(one.name, one.domains) for one in others] == [
        ("rack", ("b1/r1", "b2/r1", None)),
        ("block", ("b1", "b2", "b1")),
    ]
    gpu = topology.gpus[0]
    assert (gpu.model, gpu.machine) == ("NVIDIA-GB200", "a1")
    assert gpu.memory_gb == pytest.approx(198.67, abs=0.01)
    assert topology.link(0, 8).kind is LinkKind.NVSWITCH
    notes = " ".join(topology.notes)
    assert "Without GPUs, and left out: cpu-only." in notes
    assert "Labels do not say how the GPUs of a machine are connected." in notes


PAIRS = [tp.JobGraph.ring(2), tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)]


@pytest.mark.parametrize("speed", [None, 800.0, 2000.0])
def test_pairs_on_one_node_of_a_clique_are_as_fast_as_the_clique(nodes: str, speed: float | None) -> None:
    topology = parse(nodes, nvlink_gb_per_s=speed)
    assert (
        topology.link(0, 1)
        == topology.link(0, 8)
        == tp.Link(LinkKind.NVSWITCH, 18, min(speed or 900.0, 900.0))
    )
    assert "GPUs of one node in an NVLink domain are taken to meet in its switches." in topology.notes
    unknown = parse(nodes.replace("NVIDIA-GB200", "NVIDIA-X9"), nvlink_gb_per_s=700.0)
    assert unknown.link(0, 1) == unknown.link(0, 8) == tp.Link(LinkKind.NVSWITCH, 1, 700.0)


@pytest.mark.parametrize(
    "policy", sorted(set(tp.policies.names()) - {"kubernetes-default"})
)  # which spreads pods
@pytest.mark.parametrize("job", PAIRS, ids=["ring", "sensitive"])
def test_no_policy_prefers_another_machine_of_the_clique(nodes: str, policy: str, job: tp.JobGraph) -> None:
    topology = parse(nodes)
    placement = tp.policies.get(policy).place(job, tp.Cluster(topology))
    assert len({topology.gpus[gpu].machine for gpu in placement.gpus}) == 1  # type: ignore[union-attr]


def test_nodes_without_a_clique_and_slices_stay_unknown(mixed: str) -> None:
    assert parse(node(gpu_count="2", gpu_product="NVIDIA-GB200")).link(0, 1).kind is LinkKind.UNKNOWN
    clique = "nvidia.com/gpu.clique=7b968a6d-0000-4000-8000-000000000001.1\n"
    topology = parse(mixed + "\n" + clique, whole_gpus=1)
    assert {topology.link(0, gpu).kind for gpu in range(1, topology.num_gpus)} == {LinkKind.UNKNOWN}


def test_levels_by_label_are_told_apart_by_the_outer_ones(nodes: str) -> None:
    topology = parse(nodes, levels=LEVELS)
    fabric = fabric_of(topology)
    assert fabric.level_names == ("nvlink_domain", "rack", "block")
    assert fabric.levels[1].domains == ("b1/r1", "b2/r1", None)
    assert fabric.levels[2].domains == ("b1", "b2", "b1")
    assert "1 nodes have no label example.com/rack: they are in no known rack." in topology.notes
    with pytest.raises(tp.TopologyError, match=r"levels\['rack'\]: no node with GPUs has the label 'x'"):
        parse(nodes, levels={"rack": "x"})
    with pytest.raises(tp.TopologyError, match="nvlink_domain is the level of"):
        parse(nodes, levels={"nvlink_domain": "x"})


def test_machines_that_the_caller_knows(nodes: str) -> None:
    machine = tp.Topology.from_links(4, [(0, 1, 50.0, "nvlink2")])
    for given_machine in (machine, {"NVIDIA-GB200": machine}):
        topology = parse(nodes, template=given_machine, nvlink_gb_per_s=800.0)
        assert topology.link(4, 5).kind is LinkKind.NVLINK2
        assert topology.bandwidth(0, 8) == 800.0
    with pytest.raises(
        tp.TopologyError, match="node 'a1': template has no topology for product 'NVIDIA-GB200'"
    ):
        parse(nodes, template={"T4": machine})
    with pytest.raises(tp.TopologyError, match="node 'a1': 4 GPUs, but its template has a different number"):
        parse(nodes, template=tp.Topology.from_links(2, []))


@pytest.mark.parametrize("clique", ["32766", "00000000-0000-0000-0000-000000000000.0", ".1", "x."])
def test_half_a_clique_is_no_domain(clique: str) -> None:
    topology = parse(node(gpu_count="2", gpu_clique=clique))
    assert topology.fabric is None
    assert any("without a ClusterUUID" in note for note in topology.notes)


def test_labels_of_one_node() -> None:
    topology = parse(
        "nvidia.com/gpu.count=2\nnvidia.com/gpu.product=Tesla-T4-SHARED\nnvidia.com/gpu.replicas=4\n"
    )
    assert [gpu.model for gpu in topology.gpus] == ["Tesla-T4", "Tesla-T4"]
    assert topology.machine_names == ("machine0",)
    assert parse("kubernetes.io/hostname=n7\nnvidia.com/gpu.count=1").machine_names == ("n7",)
    assert "GPUs that several pods share are counted once: those of machine0." in topology.notes


def test_mig_single() -> None:
    topology = parse(
        node(
            gpu_count="7",
            gpu_product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
            mig_strategy="single",
            gpu_slices_gi="1",
        )
    )
    assert {(gpu.model, gpu.fraction) for gpu in topology.gpus} == {("NVIDIA-A100-SXM4-40GB", 1 / 7)}
    assert topology.gpus[6].name == "MIG6"
    assert "Labels do not say which MIG slices are parts of the same GPU." in topology.notes
    topology = parse(node(gpu_count="4", gpu_product="NVIDIA-A30", mig_strategy="single", gpu_slices_gi="1"))
    assert topology.gpus[0].fraction == 1 / 4


def test_mig_mixed(mixed: str) -> None:
    assert kubernetes_labels.recognised(mixed)
    with pytest.raises(tp.TopologyError, match="an unknown number of whole GPUs"):
        parse(mixed)
    topology = parse(mixed, whole_gpus=1)
    assert [gpu.fraction for gpu in topology.gpus] == [1.0, 1 / 7, 1 / 7, 3 / 7]
    assert [gpu.name for gpu in topology.gpus] == ["GPU0", "MIG1", "MIG2", "MIG3"]
    assert topology.gpus[3].model == "NVIDIA-A100-SXM4-40GB"
    assert topology.gpus[3].memory_gb == pytest.approx(20.94, abs=0.01)


def test_capacity_tells_whole_gpus_of_mixed_nodes() -> None:
    labels = {"gpu_count": "2", "mig-7g.40gb_count": "1", "mig_strategy": "mixed"}
    topology = parse(node(capacity={"nvidia.com/gpu": "1"}, **labels))
    assert [gpu.fraction for gpu in topology.gpus] == [1.0, 1.0]


def test_capacity_alone() -> None:
    assert parse(node(capacity={"nvidia.com/gpu": "8"})).num_gpus == 8


def test_gpus_that_cannot_be_given_away_are_noted() -> None:
    text = node(capacity={"nvidia.com/gpu": "8"}).replace(
        '"allocatable": {}', '"allocatable": {"nvidia.com/gpu": "7"}'
    )
    assert any("it is not given which: n (7 of 8)." in note for note in parse(text).notes)


def test_elided_text() -> None:
    text = "kind: Node\nmetadata:\n    ...\n    name: n\n    labels:\n      nvidia.com/gpu.count: '1'\n      ...\n...\n"
    topology = parse(text)
    assert (topology.num_gpus, topology.machine_names) == (1, ("n",))
    assert "2 lines of the text are '...': what they stand for is not known." in topology.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no node"),
        ("kind: Pod", "there is no node"),
        ("a: 1", "line 1: an object that is not a Node and has no labels"),
        ("kind: Node", "no node has a GPU: machine0"),
        (node(gpu_count="x"), "node 'n': labels nvidia.com/gpu.count = 'x' is not a whole number"),
        (node(gpu_count="300"), "node 'n': 300 GPUs are more than 256"),
        (f"[{node(gpu_count='1')},{node(gpu_count='1')}]", "node 'n': appears twice"),
        (node(gpu_count="1", mig_strategy="single", gpu_slices_gi="8"), "a MIG slice of 8 of 7"),
        (r"nvidia\.com\/gpu\.count=[0-9]+", "line 1: 'nvidia\\\\.com\\\\/gpu\\\\.count=[0-9]+' is a pattern"),
        (
            "nvidia.com/gpu.count=1\nnvidia.com/gpu.count=1",
            "line 2: label 'nvidia.com/gpu.count' appears twice",
        ),
        ("a=1\nb", "line 2: 'b' is not a label as key=value"),
        ("kind: Node\nmetadata: {labels: {a: [1]}}", "'a' = ['1'] is not a plain value"),
        ("kind: Node\nmetadata: [1]", "metadata = ['1'] is not a mapping"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(parse, text)


@given(
    st.lists(
        st.sampled_from([*'{}[]:,"\n -=.', "kind", "Node", "nvidia.com/gpu.count", "1", "metadata", "labels"])
    )
)
def test_junk(words: list[str]) -> None:
    with suppress(tp.TopologyError):
        parse("".join(words))


def test_other_devices_and_types_of_instances_are_noted() -> None:
    found = parse(
        "kind: Node\nmetadata: {name: n, labels: {node.kubernetes.io/instance-type: p6.x}}\n"
        "status: {capacity: {nvidia.com/gpu: 2, example.com/efa: 17, example.com/none: 0, cpu: 4}}\n"
    )
    assert "Other devices of nodes, which are left out: example.com/efa (17)." in found.notes
    assert any("not given, but types of instances: p6.x" in note for note in found.notes)


INSTANCE = "node.kubernetes.io/instance-type"


def amd(count: str, resource: str = "amd.com/gpu", **labels: str) -> str:
    """One node of AMD's GPUs as JSON."""
    metadata = {
        "name": "a",
        "labels": {f"amd.com/gpu.{key.replace('_', '-')}": value for key, value in labels.items()},
    }
    return json.dumps({"kind": "Node", "metadata": metadata, "status": {"capacity": {resource: count}}})


def test_no_gpu_to_give() -> None:
    assert refusal(parse, amd("0")) == (
        "no node has a GPU to give: a (amd.com/gpu: 0); its device plugin has registered none"
    )


@pytest.mark.parametrize("resource", ["amd.com/gpu", "amd.com/cpx_nps4"])
def test_parts_of_gpus_of_amd_are_no_gpus_of_their_model(resource: str) -> None:
    text = amd("64", resource, product_name="AMD_Instinct_MI300X", compute_memory_partition="cpx_nps4")
    found = parse(text)
    assert isinstance(found, tp.Topology)
    assert {gpu.model for gpu in found.gpus} == {"AMD_Instinct_MI300X cpx_nps4"}
    assert found.num_gpus == 64
    assert any("are parts of AMD's GPUs" in note and "a (cpx_nps4)" in note for note in found.notes)


def test_whole_gpus_of_amd_keep_their_model() -> None:
    found = parse(amd("8", product_name="AMD_Instinct_MI300X", compute_memory_partition="spx_nps1"))
    assert isinstance(found, tp.Topology)
    assert {gpu.model for gpu in found.gpus} == {"AMD_Instinct_MI300X"}


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("p6e-gb200.36xlarge", "GB200"),
        ("p6-b200.48xlarge", "B200"),
        ("BM.GPU.MI300X.8", "MI300X"),
        ("BM.GPU.A100-v2.8", "A100"),
        ("a2-highgpu-8g", None),
        ("VM.Standard.A1.Flex", None),
    ],
)
def test_the_model_of_an_instance(kind: str, model: str | None) -> None:
    one = json.loads(node("n", {"nvidia.com/gpu": "4"}))
    one["metadata"]["labels"] = {INSTANCE: kind}
    found = parse(json.dumps(one))
    assert isinstance(found, tp.Topology)
    assert {gpu.model for gpu in found.gpus} == {model}


def test_an_ultraserver_is_an_nvlink_domain() -> None:
    nodes = [json.loads(node(name, {"nvidia.com/gpu": "4"})) for name in "ab"]
    for one in nodes:
        one["metadata"]["labels"] = {
            INSTANCE: "p6e-gb200.36xlarge",
            "topology.k8s.aws/ultraserver-id": "us-0",
        }
    found = parse(json.dumps({"kind": "List", "items": nodes}))
    assert isinstance(found, tp.Topology)
    assert (found.link(0, 7).kind, found.link(0, 7).gb_per_s) == (LinkKind.NVSWITCH, 900.0)
