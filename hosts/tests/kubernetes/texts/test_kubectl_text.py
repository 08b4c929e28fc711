"""Kubernetes nodes as `kubectl` prints them for people."""

from __future__ import annotations

import pytest

import topoplace as tp
from refusals import refusal
from topoplace import discovery
from topoplace.topology.fabric import Fabric
from topoplace_hosts.kubernetes.texts import kubernetes_labels

parse = kubernetes_labels.parse

UUIDS = [f"7b968a6d-0000-4000-8000-00000000000{i}" for i in (1, 2)]
CLIQUES = f"""\
NODE          LABEL                  CLIQUE
rack1-node1   nvidia.com/gpu.clique  {UUIDS[0]}.1
rack1-node2   nvidia.com/gpu.clique  {UUIDS[0]}.1
rack2-node1   nvidia.com/gpu.clique  {UUIDS[1]}.1
"""
COLUMNS = f"""\
$ kubectl get nodes -L nvidia.com/gpu.clique,nvidia.com/gpu.count,nvidia.com/gpu.product
NAME  STATUS  ROLES   AGE  VERSION  GPU.CLIQUE  GPU.COUNT  GPU.PRODUCT
n1    Ready   <none>  5d   v1.30.1  {UUIDS[0]}.1  4          NVIDIA-GB200
n2    Ready   <none>  5d   v1.30.1  {UUIDS[0]}.1  4          NVIDIA-GB200
"""
DESCRIBED = f"""\
Name:               n1
Roles:              <none>
Labels:             kubernetes.io/hostname=n1
                    nvidia.com/gpu.clique={UUIDS[0]}.1
                    nvidia.com/gpu.count=4
                    nvidia.com/gpu.product=NVIDIA-GB200
Annotations:        example.com/ttl: 0
Conditions:
  Type    Status
  Ready   True
Capacity:
  cpu:             144
  memory:          2113397760Ki
  nvidia.com/gpu:  4
Allocatable:
  cpu:             143
  nvidia.com/gpu:  3
Allocated resources:
  nvidia.com/gpu   0   0
Events:            <none>
"""
OBJECTS = f"""\
kind: Node
metadata:
  name: n1
  labels:
    nvidia.com/gpu.clique: {UUIDS[0]}.1
    nvidia.com/gpu.count: "4"
    nvidia.com/gpu.product: NVIDIA-GB200
"""


def read(text: str) -> tp.Topology:
    topology = parse(text)
    assert isinstance(topology, tp.Topology)
    return topology


def machine(topology: tp.Topology) -> tuple[object, ...]:
    return topology.machine_names, topology.gpus, topology.link(0, 3)


@pytest.mark.parametrize(
    "text", [CLIQUES, CLIQUES.replace("  ", "\t"), "```\n" + CLIQUES + "```\nThe end.\n"]
)
def test_a_table_of_cliques_is_a_network(text: str) -> None:
    fabric = discovery.read(text)
    assert isinstance(fabric, Fabric)
    assert fabric.machines == ("rack1-node1", "rack1-node2", "rack2-node1")
    assert fabric.levels[0].domains == (f"{UUIDS[0]}.1", f"{UUIDS[0]}.1", f"{UUIDS[1]}.1")
    assert fabric.notes == ("The number of GPUs of a node is not given.",)


def test_nodes_without_a_clique_are_left_out() -> None:
    text = "NODE\tCLIQUE\n" + f"n1\t{UUIDS[0]}.1\nn2\t\nn3\tnull\n"
    fabric = parse(text)
    assert isinstance(fabric, Fabric)
    assert fabric.machines == ("n1",)
    assert "Without a clique or a level, and left out: n2, n3." in fabric.notes


def test_a_template_tells_what_the_table_does_not() -> None:
    topology = parse(CLIQUES, template=tp.Topology.from_links(4, [], model="GB200"))
    assert isinstance(topology, tp.Topology)
    assert (topology.num_gpus, topology.num_machines) == (12, 3)
    assert topology.link(0, 4) == tp.Link(tp.LinkKind.NVSWITCH, 18, 900.0)


def test_columns_of_labels_are_labels() -> None:
    topology = read(COLUMNS)
    assert topology.num_gpus == 8
    assert machine(topology.machine("n1")) == machine(read(OBJECTS))
    labels = f"nvidia.com/gpu.count=4,nvidia.com/gpu.product=NVIDIA-GB200,nvidia.com/gpu.clique={UUIDS[0]}.1"
    shown = f"NAME  STATUS  LABELS\nn1  Ready  {labels}\n"
    assert machine(read(shown)) == machine(read(OBJECTS))
    assert discovery.format_of(shown).name == "Kubernetes nodes"
    wide = shown.replace("STATUS", "STATUS  OS-IMAGE").replace("Ready", "Ready   Ubuntu 22.04.4 LTS")
    assert machine(read(wide)) == machine(read(OBJECTS))


def test_descriptions_are_nodes() -> None:
    assert machine(read(DESCRIBED)) == machine(read(OBJECTS))
    assert "n1 (3 of 4)" in " ".join(read(DESCRIBED).notes)
    indented = "\n".join("    " + line for line in DESCRIBED.split("\n"))
    assert machine(read("$ kubectl describe node n1\n\n" + indented)) == machine(read(OBJECTS))
    two = read(DESCRIBED + "\n\n" + DESCRIBED.replace("n1", "n2"))
    assert (two.machine_names, two.num_gpus) == (("n1", "n2"), 8)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (DESCRIBED.replace("Conditions:", "Unschedulable:  true\nConditions:"), "Unschedulable: true"),
        (DESCRIBED.replace("Ready   True", "Ready   False"), "Ready: False"),
        (DESCRIBED.replace("Ready   True", "Ready   Unknown  Mon, 01 Jan"), "Ready: Unknown"),
        (COLUMNS.replace("Ready   ", "NotReady "), "NotReady"),
        (COLUMNS.replace("Ready   ", "Ready,SchedulingDisabled "), "SchedulingDisabled"),
        (OBJECTS + "spec: {unschedulable: true}\n", "Unschedulable: true"),
        (OBJECTS + "status:\n  conditions: [{type: Ready, status: 'False'}]\n", "Ready: False"),
    ],
)
def test_nodes_that_get_no_pods_have_gpus_that_get_no_jobs(text: str, why: str) -> None:
    topology = read(text)
    assert not any(gpu.healthy for gpu in topology.gpus)
    assert any(
        note.startswith(f"Nodes that get no pods, whose GPUs are marked unhealthy: n1 ({why})")
        for note in topology.notes
    )
    one_of_two = read(
        DESCRIBED + "\n" + DESCRIBED.replace("n1", "n2").replace("Ready   True", "Ready   False")
    )
    assert [gpu.healthy for gpu in one_of_two.gpus] == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Capacity:\n  nvidia.com/gpu:  8\nAllocatable:\n  nvidia.com/gpu:  6\n", "machine0 (6 of 8)"),
        (
            "$ kubectl describe node\n...\nAllocatable:\n  cpu:  9\n  nvidia.com/gpu:  8\n...\n",
            "Only the allocatable GPUs are given, there may be more: those of machine0.",
        ),
        (
            "me@host:~# kubectl describe nodes |grep -i gpu\n nvidia.com/gpu:  8\n nvidia.com/gpu:  5\n",
            "(5 of 8)",
        ),
        ("....\nAllocatable:\n  nvidia.com/gpu:  8\n...\n", "2 lines of the text are '...'"),
    ],
)
def test_a_part_of_a_description(text: str, note: str) -> None:
    assert discovery.format_of(text).name == "Kubernetes nodes"
    topology = read(text)
    assert topology.num_gpus == 8
    assert note in " ".join(topology.notes)


def test_the_status_of_a_node_alone() -> None:
    status = "status:\n  allocatable:\n    nvidia.com/gpu: '2'\n  capacity:\n    cpu: '16'\n    nvidia.com/gpu: '2'\n"
    assert read(status).num_gpus == 2
    assert discovery.format_of(status).name == "Kubernetes nodes"


def test_a_described_node_without_gpus_is_refused_by_its_name() -> None:
    text = DESCRIBED.replace("nvidia.com/gpu", "example.com/widget")
    assert discovery.format_of(text).name == "Kubernetes nodes"
    assert refusal(discovery.read, text).startswith("no node has a GPU: n1; ")


def test_a_nodes_capacity_counts_mig_slices() -> None:
    slices = DESCRIBED.replace("GB200", "H100-80GB-HBM3").replace(
        "  nvidia.com/gpu:  4\n", "  nvidia.com/gpu:  1\n  nvidia.com/mig-1g.10gb:  7\n"
    )
    topology = read(slices.replace("gpu.count=4", "gpu.count=2"))
    assert [gpu.fraction for gpu in topology.gpus] == [1.0] + [1 / 7] * 7
    assert [gpu.memory_gb for gpu in topology.gpus] == [None] + [10.0] * 7
    assert not any("differs from the capacity" in note for note in topology.notes)


def test_a_label_that_contradicts_the_capacity_is_noted() -> None:
    note = "Nodes whose label nvidia.com/gpu.count, which is read, differs from the capacity: n1 (8, and 4)."
    topology = read(DESCRIBED.replace("gpu.count=4", "gpu.count=8"))
    assert topology.num_gpus == 8
    assert note in topology.notes
    shared = DESCRIBED.replace("gpu.count=4", "gpu.count=2\n                    nvidia.com/gpu.replicas=2")
    assert not any("differs from the capacity" in note for note in read(shared).notes)


LABELS = [line.strip() for line in DESCRIBED.split("\n") if line.strip().startswith("nvidia.com/gpu.")]


@pytest.mark.parametrize(
    "text",
    [
        "$ kubectl describe node n1 | grep nvidia.com\n"
        + "\n".join(LABELS)
        + "\n  nvidia.com/gpu:  4\n  nvidia.com/gpu:  3\n",
        "\n".join(LABELS).replace("=", ": "),
        "labels:\n  " + "\n  ".join(LABELS).replace("=", ": "),
    ],
    ids=["grep", "key: value", "labels"],
)
def test_labels_alone_are_one_node(text: str) -> None:
    assert discovery.format_of(text).name == "Kubernetes nodes"
    assert read(text).link(0, 3) == read(OBJECTS).link(0, 3)
    assert read(text).machine_names == ("machine0",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            COLUMNS.replace("Ready   <none>", "Ready Disabled <none>", 1),
            "line 3: 9 cells, and the table has 8 titles; use",
        ),
        (
            CLIQUES.replace("nvidia.com/gpu.clique", "x y", 1),
            "line 2: 4 cells, and the table has 3 titles; use",
        ),
        (
            COLUMNS.replace("Ready   <none>", "", 1),
            "line 3: 6 cells are not below their 8 titles; give the table as printed",
        ),
        (CLIQUES + CLIQUES.split("\n")[1], "line 5: node 'rack1-node1': appears twice"),
        (
            COLUMNS.replace(" 4 ", " four ", 1),
            "line 3: node 'n1': labels nvidia.com/gpu.count = 'four' is not a whole number",
        ),
        (
            DESCRIBED.replace("nvidia.com/gpu:  4", "nvidia.com/gpu:  four"),
            "line 1: node 'n1': capacity nvidia.com/gpu = 'four' is not a whole number",
        ),
        (DESCRIBED.replace("gpu.count", "gpu.clique"), "line 5: label 'nvidia.com/gpu.clique' appears twice"),
        (
            "NAME LABELS\nn1 a=b\n",
            "no node has a GPU: n1; the text has neither nvidia.com/gpu.count nor a capacity",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(parse, text)
