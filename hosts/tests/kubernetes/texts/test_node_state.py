"""What conditions and taints of Kubernetes nodes do: some close a node, all others are noted by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import Fabric, discovery

Conditions = Mapping[str, str]
WELL = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def node(conditions: Conditions, taints: Sequence[str] = (), *, name: str = "n1", gpus: str = "4") -> str:
    """Return a Node object in JSON."""
    parts = [(*key.partition("="), effect) for key, _, effect in (taint.partition(":") for taint in taints)]
    return json.dumps(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
            "spec": {"taints": [{"key": k, "value": v, "effect": e} for k, _, v, e in parts]},
            "status": {
                "capacity": {"nvidia.com/gpu": gpus},
                "conditions": [{"type": kind, "status": status} for kind, status in conditions.items()],
            },
        }
    )


def described(conditions: Conditions, taints: Sequence[str] = (), *, name: str = "n1") -> str:
    """Return what `kubectl describe node` prints of the same node."""
    first, *others = taints or ["<none>"]
    more = "".join(f"                    {taint}\n" for taint in others)
    shown = "".join(
        f"  {kind:<20} {status:<8} Mon, 02 Nov 2026 10:00:00 +0000   Reason   a message: text\n"
        for kind, status in conditions.items()
    )
    return (
        f"Name:               {name}\nLabels:             nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3\n"
        f"Taints:             {first}\n{more}Unschedulable:      false\n"
        f"Conditions:\n  Type   Status  LastHeartbeatTime\n  ----   ------  -----------------\n{shown}"
        "Capacity:\n  nvidia.com/gpu:  4\n"
    )


def read(text: str) -> tp.Topology:
    topology = tp.read(text)
    assert isinstance(topology, tp.Topology)
    return topology


def noted(topology: tp.Topology | Fabric) -> list[str]:
    """Return the notes about the state of nodes."""
    starts = ("Nodes that get no pods", "Conditions that nodes report", "Taints of nodes")
    return [note for note in topology.notes if note.startswith(starts)]


FORMS = pytest.mark.parametrize("form", [node, described], ids=["object", "describe"])


@FORMS
@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ({"GpuXidError": "True"}, "GpuXidError: True"),
        ({"GPUMissing": "True", "IBLinkFlapping": "True"}, "GPUMissing: True (n1); IBLinkFlapping: True"),
        ({"DiskPressure": "True"}, "DiskPressure: True"),
        ({"example.com/GpuLost": "True"}, "example.com/GpuLost: True"),
        ({"UnhealthyNvidiaDevicePlugin": "Unknown"}, "UnhealthyNvidiaDevicePlugin: Unknown"),
        ({"AcceleratedHardwareReady": "False"}, "AcceleratedHardwareReady: False"),
        ({"GpuNotReady": "True"}, "GpuNotReady: True"),
    ],
)
def test_conditions_of_agents_are_noted_and_close_no_node(
    form: Callable[..., str], conditions: Conditions, told: str
) -> None:
    topology = read(form({**WELL, **conditions}))
    assert noted(topology) == [f"Conditions that nodes report, and that close none: {told} (n1)."]
    assert all(gpu.healthy for gpu in topology.gpus)


@FORMS
@pytest.mark.parametrize(
    ("conditions", "taints"),
    [
        (WELL, ["nvidia.com/gpu=present:NoSchedule", "amd.com/gpu:NoExecute", "sku=gpu:NoSchedule"]),
        ({**WELL, "KernelDeadlock": "False", "NetworkUnavailable": "False", "EtcdIsVoter": "True"}, []),
        ({**WELL, "NetworkingReady": "True"}, ["gpu=true:NoSchedule"]),
    ],
)
def test_what_is_usual_is_not_noted(
    form: Callable[..., str], conditions: Conditions, taints: list[str]
) -> None:
    topology = read(form(conditions, taints))
    assert noted(topology) == []
    assert all(gpu.healthy for gpu in topology.gpus)


@FORMS
@pytest.mark.parametrize(
    ("conditions", "taints", "why"),
    [
        ({"Ready": "Unknown", "DiskPressure": "Unknown"}, [], "Ready: Unknown"),
        ({"NetworkUnavailable": "True"}, [], "NetworkUnavailable: True"),
        ({}, ["node.kubernetes.io/unreachable:NoExecute"], "node.kubernetes.io/unreachable:NoExecute"),
        ({}, ["node.kubernetes.io/not-ready:NoSchedule"], "node.kubernetes.io/not-ready:NoSchedule"),
        (
            {"Ready": "False"},
            ["nvidia.com/gpu:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"],
            "Ready: False",
        ),
    ],
)
def test_a_node_that_is_not_ready_is_closed(
    form: Callable[..., str], conditions: Conditions, taints: list[str], why: str
) -> None:
    topology = read(form({**WELL, **conditions}, taints))
    assert noted(topology) == [f"Nodes that get no pods, whose GPUs are marked unhealthy: n1 ({why})."]
    assert not any(gpu.healthy for gpu in topology.gpus)


@FORMS
def test_other_taints_are_noted_and_close_no_node(form: Callable[..., str]) -> None:
    taints = ["team=vision:NoSchedule", "node.kubernetes.io/not-ready:PreferNoSchedule", "repair:NoExecute"]
    topology = read(form(WELL, taints))
    assert noted(topology) == [
        f"Taints of nodes, which get only pods that tolerate them: {'; '.join(f'{one} (n1)' for one in taints)}."
    ]
    assert all(gpu.healthy for gpu in topology.gpus)


def test_nodes_with_the_same_condition_are_one_part_of_a_note() -> None:
    lost = {**WELL, "GpuLost": "True"}
    nodes = [*(node(lost, name=f"n{i}") for i in range(7)), node(WELL, name="n7")]
    found = read(f"[{', '.join(nodes)}]")
    assert noted(found) == [
        "Conditions that nodes report, and that close none: GpuLost: True (n0, n1, n2, n3, n4 and 2 more)."
    ]


def test_the_state_of_nodes_without_gpus_is_not_noted() -> None:
    text = node(
        {**WELL, "DiskPressure": "True"}, ["node-role.kubernetes.io/control-plane:NoSchedule"], gpus="0"
    )
    assert noted(read(f"[{text}, {node(WELL, name='n2')}]")) == []


def test_a_network_of_nodes_notes_their_states() -> None:
    found = discovery.read(
        "NAME  STATUS    ROLES   AGE  VERSION  NETWORK-NODE-LAYER-1\n"
        "n1    Ready     <none>  9d   v1.34.2  nn-a\n"
        "n2    NotReady  <none>  9d   v1.34.2  nn-a\n"
    )
    assert isinstance(found, Fabric)
    assert noted(found) == ["Nodes that get no pods, which a network does not mark: n2 (NotReady)."]


WORDS = st.from_regex(r"[A-Z][A-Za-z]{2,12}", fullmatch=True)
CONDITIONS = st.dictionaries(WORDS, st.sampled_from(["True", "False", "Unknown"]), max_size=6)
TAINTS = st.lists(
    st.from_regex(r"[a-z]{3,9}(?:=[a-z]{1,5})?:(?:NoSchedule|NoExecute|PreferNoSchedule)", fullmatch=True),
    max_size=5,
    unique=True,
)


@given(CONDITIONS, TAINTS)
def test_both_forms_say_the_same_and_lose_nothing(conditions: Conditions, taints: list[str]) -> None:
    by_object, by_text = read(node(conditions, taints)), read(described(conditions, taints))
    assert noted(by_object) == noted(by_text)
    assert [gpu.healthy for gpu in by_object.gpus] == [gpu.healthy for gpu in by_text.gpus]
    said = " ".join(noted(by_object))
    problems = [f"{kind}: True" for kind, status in conditions.items() if status == "True"]
    good = (
        "Ready",
        "Healthy",
        "Available",
        "Active",
        "Registered",
        "Succeeded",
        "Passed",
        "Voter",
        "OK",
        "Ok",
    )
    assert all(one in said for one in problems if not one.removesuffix(": True").endswith(good))
    assert all(taint in said for taint in taints if "gpu" not in taint)
