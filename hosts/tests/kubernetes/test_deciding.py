"""Decisions for pods: exact GPUs on nodes that may run them, whatever the API server said before."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import node_json, nodes_outside, pod_json
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.objects.annotations import GPUS
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import Pod, pod
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import Postponed, decide
from topoplace_hosts.kubernetes.scheduler.predicates import why_not
from topoplace_hosts.kubernetes.scheduler.seats import Seats

POLICY = tp.policies.get("topo-aware")


def state_of(count: int = 3, machine: str = "dgx1-v100", **fields: Any) -> ClusterState:
    names = [f"n{i}" for i in range(count)]
    made = ClusterState(tp.Topology.cluster(tp.machines.get(machine), count, names=names))
    for outside in nodes_outside():
        made.set_node(node(outside))
    for name in names:
        made.set_node(node(node_json(name, made.topology.num_gpus // count, **fields)))
    return made


def seated(state: ClusterState, *pods: Pod) -> Seats:
    found = decide(POLICY, state, pods)
    assert not isinstance(found, Refusal), found.reason
    return found


def refused(state: ClusterState, *pods: Pod) -> str:
    found = decide(POLICY, state, pods)
    assert isinstance(found, Refusal)
    return found.reason


def bound(name: str, where: str, gpus: str, count: int = 1, **fields: Any) -> Pod:
    return pod(pod_json(name, count, nodeName=where, annotations={GPUS: gpus}, **fields))


def test_a_pod_gets_the_gpus_that_the_policy_chooses() -> None:
    state = state_of(1)
    ((_, where, gpus, _),) = seated(state, pod(pod_json("a", 3)))
    job = tp.JobGraph.ring(3).with_(bandwidth_sensitive=True, single_machine=True)
    placed = POLICY.place(job, tp.Cluster(state.topology))
    assert placed is not None
    assert (where, gpus) == ("n0", placed.gpus)


def test_what_a_pod_asks_for_reaches_the_policy() -> None:
    state = state_of(1)
    request = {"topoplace.io/request": '{"min_bandwidth": 1000}'}
    assert "slowest link" in refused(state, pod(pod_json("a", 2, annotations=request)))
    request = {"topoplace.io/request": '{"patern": "ring"}'}
    assert "'patern' is not one of" in refused(state, pod(pod_json("a", 2, annotations=request)))
    request = {"topoplace.io/request": '{"model": "H100"}'}
    assert "none has the GPUs" in refused(state, pod(pod_json("a", 2, annotations=request)))


def test_a_demand_that_is_not_honoured_is_refused_by_name() -> None:
    claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}
    found = decide(POLICY, state_of(), [pod(pod_json("a", 2, **claim))])
    assert isinstance(found, Refusal)
    assert found.permanent
    assert found.reason == "a: a volume claim cannot be honoured"


def test_bound_pods_hold_their_gpus_until_they_end() -> None:
    state = state_of(1)
    state.set_pod(bound("x", "n0", '{"main":[0,1,2,3,4,5]}', 6))
    assert set(seated(state, pod(pod_json("a", 2)))[0].gpus) == {6, 7}
    assert "too little nvidia.com/gpu" in refused(state, pod(pod_json("a", 3)))
    state.set_pod(bound("x", "n0", '{"main":[0,1,2,3,4,5]}', 6, phase="Succeeded"))
    assert len(seated(state, pod(pod_json("a", 8)))[0].gpus) == 8


def test_a_deleted_pod_holds_its_gpus_until_it_is_gone() -> None:
    state = state_of(1)
    held = bound("x", "n0", '{"main":[0]}')
    state.set_pod(replace(held, deleting=True))
    assert "too little" in refused(state, pod(pod_json("a", 8)))
    state.remove_pod(held.uid)
    assert seated(state, pod(pod_json("a", 8)))


@pytest.mark.parametrize("gpus", ["", "{}", '{"main":[9]}', '{"main":[0,1]}', '{"other":[0]}'])
def test_a_node_where_nobody_says_which_gpus_a_pod_holds_gets_no_more(gpus: str) -> None:
    state = state_of(2)
    state.set_pod(bound("x", "n0", gpus))
    for i in range(8):
        state.assume(*seated(state, pod(pod_json(f"a{i}")))[0])
    assert {one.node for one in state.pods.values() if one.name != "x"} == {"n1"}
    assert isinstance(decide(POLICY, state, [pod(pod_json("b"))]), Refusal)
    state.remove_pod("uid-x")
    assert seated(state, pod(pod_json("b")))[0].node == "n0"


def test_a_stolen_annotation_closes_the_node_and_gives_no_gpu_twice() -> None:
    state = state_of(1)
    state.set_pod(bound("x", "n0", '{"main":[0,1]}', 2))
    state.set_pod(bound("thief", "n0", '{"main":[1,2]}', 2))
    assert isinstance(decide(POLICY, state, [pod(pod_json("a"))]), Refusal)
    state.remove_pod("uid-thief")
    assert not {0, 1} & set(seated(state, pod(pod_json("a", 6)))[0].gpus)


def test_a_changed_annotation_changes_nothing() -> None:
    state = state_of(1)
    state.set_pod(bound("x", "n0", '{"main":[0,1]}', 2))
    state.set_pod(bound("x", "n0", '{"main":[4,5]}', 2))
    assert set(seated(state, pod(pod_json("a", 6)))[0].gpus) == {2, 3, 4, 5, 6, 7}


def test_a_pod_that_cannot_be_read_closes_its_node() -> None:
    state = state_of(2)
    state.close_for("strange", "n0")
    assert seated(state, pod(pod_json("a")))[0].node == "n1"
    state.remove_pod("strange")
    assert len(seated(state, *[pod(pod_json(f"a{i}", 8)) for i in range(2)])) == 2


def test_an_assumed_pod_survives_older_news_and_yields_to_truth() -> None:
    state = state_of(1)
    waiting = pod(pod_json("a", 2))
    assumed = state.assume(waiting, "n0", (0, 3))
    assert assumed.annotations[GPUS] == '{"main":[0,3]}'
    state.set_pod(waiting)  # what the server said before it was bound
    assert state.cluster.gpus_of(waiting.job_id) == (0, 3)
    state.set_pod(bound("a", "n0", '{"main":[5,6]}', 2))  # somebody else has bound it
    assert state.cluster.gpus_of(waiting.job_id) == (5, 6)


def test_a_node_that_offers_fewer_gpus_than_it_has_gets_none() -> None:
    state = state_of(2)
    state.set_node(node(node_json("n0", 7)))
    assert {seat.node for seat in seated(state, *[pod(pod_json(f"a{i}")) for i in range(8)])} == {"n1"}
    state.remove_node("n1")
    assert isinstance(decide(POLICY, state, [pod(pod_json("b"))]), Refusal)


def test_unhealthy_gpus_of_the_topology_are_never_given() -> None:
    machine = tp.machines.get("dgx1-v100").with_unhealthy([0, 5])
    state = ClusterState(tp.Topology.cluster(machine, 2, names=["n0", "n1"]))
    for name in ("n0", "n1"):
        state.set_node(node(node_json(name, 6)))
    for _ in range(2):
        seat = seated(state, pod(pod_json("a", 6)))[0]
        assert not {0, 5, 8, 13} & set(seat.gpus)
        state.assume(*seat)
        state.remove_pod("uid-a")


def test_pods_without_gpus_go_where_fewest_gpus_are_free() -> None:
    state = state_of(2)
    state.set_pod(bound("x", "n1", '{"main":[0,1]}', 2))
    assert seated(state, pod(pod_json("a", 0)))[0] == (pod(pod_json("a", 0)), "n1", (), ())
    state.set_node(node(node_json("cpus", 0)))
    assert seated(state, pod(pod_json("a", 0)))[0].node == "cpus"
    assert isinstance(decide(POLICY, state, [pod(pod_json("a", 0, nodeSelector={"pool": "x"}))]), Refusal)


def test_pods_without_gpus_break_no_rack() -> None:
    """n2 is full and gets no more pods: n3 of its rack has as many free GPUs as n0, whose rack is idle."""
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 4, names=["n0", "n1", "n2", "n3"], racks=2)
    state = ClusterState(topology)
    for name in topology.machine_names:
        state.set_node(node(node_json(name, 4, unschedulable=name == "n2")))
    state.set_pod(bound("x", "n2", '{"main":[0,1,2,3]}', 4))
    assert seated(state, pod(pod_json("a", 0)))[0].node == "n3"
    state.set_node(node(node_json("n3", 4, unschedulable=True)))
    assert seated(state, pod(pod_json("a", 0)))[0].node == "n0"


def test_reasons_are_counted() -> None:
    state = state_of(3)
    state.set_node(node(node_json("n0", unschedulable=True)))
    state.set_node(node(node_json("n1", ready=False)))
    assert (
        refused(state, pod(pod_json("a", cpu="200")))
        == "0 of 6 nodes: 3 too little cpu, 1 cordoned, 1 not ready, "
        "1 taint node-role.kubernetes.io/control-plane"
    )


def test_nodes_whose_gpus_are_not_known_are_counted_with_the_others() -> None:
    state = state_of(3)
    state.set_node(node(node_json("elsewhere", 8, labels={"pool": "x"})))
    reason = refused(state, pod(pod_json("a", 1, nodeSelector={"pool": "x"})))
    assert reason.endswith("1 GPUs not known")
    assert "nodeSelector" in reason


# ---- groups --------------------------------------------------------------------------------------------------------


def members(count: int, gpus: int, **fields: Any) -> list[Pod]:
    return [pod(pod_json(f"g{i}", gpus, **fields)) for i in range(count)]


def test_a_group_gets_whole_pods_on_nodes() -> None:
    state = state_of(3)
    seats = seated(state, *members(6, 4))
    assert sorted(seat.node for seat in seats) == ["n0", "n0", "n1", "n1", "n2", "n2"]
    assert sorted(gpu for seat in seats for gpu in seat.gpus) == list(range(24))


def test_a_group_starts_wholly_or_not_at_all_and_leaves_no_trace() -> None:
    state = state_of(3)
    assert refused(state, *members(7, 4)).startswith("6 of 7 pods of the group fit")
    assert not state.pods
    state.focus(state.eligible_machines(pod(pod_json("a"))))
    assert state.cluster.num_free == 24
    assert state.cluster.allocations == {}


def test_a_group_that_the_policy_would_split_inside_a_pod_is_placed_pod_by_pod() -> None:
    state = state_of(3)
    for i in range(3):
        state.set_pod(bound(f"x{i}", f"n{i}", '{"main":[0,1]}', 2))
    seats = seated(state, *members(3, 5))
    assert {seat.node for seat in seats} == {"n0", "n1", "n2"}


@pytest.mark.parametrize("seed", range(40))
def test_the_tasks_of_each_pod_are_placed_on_one_node(seed: int) -> None:
    """The GPUs of the pods, in their order, are what the policy decides where each pod is a group on a machine."""
    generator = random.Random(seed)
    state, each, count = state_of(4), generator.randint(2, 4), generator.randint(2, 5)
    for i in range(4):
        taken = generator.sample(range(8), generator.randint(1, 6))
        state.set_pod(bound(f"x{i}", f"n{i}", f'{{"main":{taken}}}', len(taken)))
    found = decide(POLICY, state, members(count, each))
    job = tp.JobGraph.ring(count * each).with_(bandwidth_sensitive=True)
    cluster = tp.Cluster(state.topology)
    for gpu in set(range(32)) - set(state.cluster.free_gpus()):
        cluster.drain(gpu)
    plain, whole = POLICY.place(job, cluster), POLICY.place(job.grouped(each, within="machine"), cluster)
    if plain is None or whole is None:
        assert isinstance(found, Refusal) == (whole is None)
        return
    assert not isinstance(found, Refusal)
    seats = [seat.gpus for seat in found]
    pods = [plain.gpus[i * each : (i + 1) * each] for i in range(count)]
    are_whole = all(len({gpu // 8 for gpu in own}) == 1 for own in pods)
    assert [gpu for own in seats for gpu in own] == list((plain if are_whole else whole).gpus)


def test_a_group_keeps_to_what_nodes_have_left() -> None:
    state = state_of(3, cpu="3")
    seats = seated(state, *members(3, 2, cpu="2"))
    assert {seat.node for seat in seats} == {"n0", "n1", "n2"}
    assert "too little cpu" in refused(state, *members(4, 2, cpu="2"))


def test_different_pods_of_a_group() -> None:
    state = state_of(2)
    seats = seated(state, *members(1, 8), pod(pod_json("small", 1)), pod(pod_json("none", 0)))
    assert [len(seat.gpus) for seat in seats] == [8, 1, 0]


# ---- groups that are kept together -----------------------------------------------------------------------------

KUEUE, KAI = "kueue.x-k8s.io/podset-", "kai.scheduler/topology-"
RACK = "cloud.provider.com/topology-rack"
LEADER = {"topoplace.io/group": "g", "topoplace.io/group-size": "4"}


def racks(*sizes: int, level: str = "rack", label: str = RACK) -> ClusterState:
    """Return nodes of 8 GPUs in racks of these sizes, two racks to a block."""
    rack_of = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    names = tuple(f"n{i}" for i in range(len(rack_of)))
    levels = (
        tp.Level(level, tuple(f"r{rack}" for rack in rack_of)),
        tp.Level("block", tuple(f"b{rack // 2}" for rack in rack_of)),
    )
    made = ClusterState(tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=tp.Fabric(names, levels)))
    for name, rack in zip(names, rack_of, strict=True):
        made.set_node(node(node_json(name, 8, labels={label: f"value-{rack}"})))
    return made


def rack_of(state: ClusterState, seats: Seats) -> list[str | None]:
    """Return the rack of each pod, in the order of pods."""
    fabric = state.topology.fabric
    assert fabric
    return [fabric.levels[0].domains[state.topology.machine_names.index(seat.node)] for seat in seats]


def gang(count: int, gpus: int, **annotations: str) -> list[Pod]:
    labels = {"topoplace.io/group": "g", "topoplace.io/group-size": str(count)}
    return members(count, gpus, labels=labels, annotations=annotations)


@pytest.mark.parametrize("annotation", [f"{KUEUE}required-topology", f"{KAI}required-placement"])
@pytest.mark.parametrize(
    ("level", "label"),
    [
        ("rack", RACK),
        ("rack", "rack"),
        ("leaf", "example.com/tor-switch"),
        ("aisle", "cloud.provider.com/topology-aisle"),
        ("nvlink_domain", "nvidia.com/gpu.clique"),
        (RACK, RACK),
    ],
)
def test_all_pods_of_a_set_are_in_one_domain(annotation: str, level: str, label: str) -> None:
    state = racks(2, 3, level=level, label=label)
    seats = seated(state, *gang(3, 8, **{annotation: label}))
    assert rack_of(state, seats) == ["r1"] * 3
    reason = refused(state, *gang(4, 8, **{annotation: label}))
    assert level in reason


@pytest.mark.parametrize(
    ("slices", "each"),
    [
        ({f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "2"}, 2),
        ({f"{KUEUE}slice-required-topology-constraints": f'[{{"topology": "{RACK}", "size": 3}}]'}, 3),
        ({"topoplace.io/request": '{"groups": "24@rack"}'}, 3),
    ],
)
def test_slices_are_consecutive_pods_in_one_domain(slices: dict[str, str], each: int) -> None:
    state = racks(3, 3, 1, 3)
    state.set_pod(bound("x", "n0", '{"main":[0]}', 1))
    seats = seated(state, *gang(6, 8, **slices))
    found = rack_of(state, seats)
    assert [seat.pod.name for seat in seats] == [f"g{i}" for i in range(6)]
    assert all(len(set(found[i : i + each])) == 1 for i in range(0, 6, each))
    for i in range(3, 10):
        state.set_pod(bound(f"y{i}", f"n{i}", '{"main":[0]}', 1))
    assert f"0 of {6 // each} groups of {8 * each}" in refused(racks(1, 1, 1, 1, 1, 1), *gang(6, 8, **slices))
    assert isinstance(decide(POLICY, state, gang(6, 8, **slices)), Refusal)


def test_slices_of_several_levels() -> None:
    layers = '[{"topology": "block", "size": 4}, {"topology": "kubernetes.io/hostname", "size": 2}]'
    state = racks(1, 1, 1, 1)
    pods = gang(8, 4, **{f"{KUEUE}slice-required-topology-constraints": layers})
    seats = seated(state, *pods)
    numbers = [int(seat.node[1:]) for seat in seats]
    assert numbers[::2] == numbers[1::2]
    assert sorted(len({number // 2 for number in numbers[i : i + 4]}) for i in (0, 4)) == [1, 1]
    assert sorted(numbers) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_preferred_levels_do_not_keep_pods_waiting() -> None:
    for name in (f"{KUEUE}preferred-topology", f"{KAI}preferred-placement"):
        assert set(rack_of(racks(1, 2, 2), seated(racks(1, 2, 2), *gang(2, 8, **{name: RACK})))) < {
            "r1",
            "r2",
        }
        assert len(seated(racks(1, 2, 2), *gang(5, 8, **{name: RACK}))) == 5
        state = racks(1, 3, 1, 2)
        state.set_pod(bound("x", "n0", '{"main":[0,1,2,3,4,5,6]}', 7))
        seats = seated(state, *gang(3, 8, **{name: RACK}))
        assert set(rack_of(state, seats)) == {"r1"}
        state = racks(1, 2, 2, 2)  # no rack has room for all, the second block has
        assert set(rack_of(state, seated(state, *gang(4, 8, **{name: RACK})))) == {"r2", "r3"}
    both = {f"{KAI}required-placement": "block", f"{KAI}preferred-placement": RACK}
    assert rack_of(racks(1, 1, 2, 2), seated(racks(1, 1, 2, 2), *gang(3, 8, **both)))[0] in ("r2", "r3")


def test_required_hostname_is_one_node() -> None:
    seats = seated(racks(2, 2), *gang(2, 4, **{f"{KUEUE}required-topology": "kubernetes.io/hostname"}))
    assert len({seat.node for seat in seats}) == 1
    assert isinstance(
        decide(POLICY, racks(2, 2), gang(2, 8, **{f"{KUEUE}required-topology": "kubernetes.io/hostname"})),
        Refusal,
    )


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (
            {f"{KUEUE}required-topology": "example.com/hall"},
            "kueue.x-k8s.io/podset-required-topology = 'example.com/hall' is the label of no level of the topology; it "
            "has 'machine', 'rack', 'block'",
        ),
        ({f"{KAI}preferred-placement": ""}, "topology-preferred-placement = '' is not the key of a node label"),
        ({f"{KUEUE}slice-required-topology": RACK}, "podset-slice-size = '' is not a number of pods"),
        ({f"{KUEUE}slice-size": "2"}, "podset-slice-size without kueue.x-k8s.io/podset-slice-required-topology"),
        ({f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "0"}, "podset-slice-size = 0"),
        ({f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "9"}, "topology-rack': groups = 72"),
        ({f"{KUEUE}slice-required-topology-constraints": "[]"}, "is not a JSON array of 1 to 3"),
        ({f"{KUEUE}slice-required-topology-constraints": "{" * 999}, "is not a JSON array of 1 to 3"),
        (
            {f"{KUEUE}slice-required-topology-constraints": '[{"topology": "rack", "sizes": [1, 3]}]'},
            "podset-slice-required-topology-constraints[0]: 'sizes' cannot be honoured",
        ),
        (
            {f"{KUEUE}slice-required-topology-constraints": '[{"topology": 1, "size": 1}]'},
            "constraints[0]: topology = 1 is not",
        ),
        ({"topoplace.io/request": '{"groups": "12@rack"}'}, "crosses"),
        ({"topoplace.io/request": '{"balanced": "hall"}'}, "balanced = 'hall' cannot be honoured"),
    ],
)  # fmt: skip
def test_annotations_that_cannot_be_honoured_are_named(annotations: dict[str, str], message: str) -> None:
    found = decide(POLICY, racks(2, 2), gang(4, 8, **annotations))
    assert isinstance(found, Refusal)
    assert found.permanent
    assert message in found.reason


def test_a_set_without_a_group_is_refused_with_the_remedy() -> None:
    annotations = {f"{KUEUE}required-topology": RACK}
    reason = refused(racks(2, 2), pod(pod_json("a", 8, annotations=annotations)))
    assert reason == (
        f"kueue.x-k8s.io/podset-required-topology = '{RACK}' of a pod that starts by itself cannot be honoured: "
        "give its pods the labels topoplace.io/group and topoplace.io/group-size"
    )


def test_a_set_of_one_pod_needs_a_level_that_is_there() -> None:
    state = racks(2, 2)
    assert seated(state, *gang(1, 8, **{f"{KUEUE}required-topology": RACK}))
    assert "is the label of no level" in refused(state, *gang(1, 8, **{f"{KUEUE}required-topology": "hall"}))
    slices = {f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "1"}
    assert seated(state, pod(pod_json("a", 8, annotations=slices)))


@pytest.mark.parametrize("selector", [{"kubernetes.io/hostname": "n3"}, {RACK: "value-1"}])
def test_what_kueue_has_decided_itself_is_fulfilled(selector: dict[str, str]) -> None:
    annotations = {f"{KUEUE}required-topology": RACK}
    one = pod(pod_json("a", 8, annotations=annotations, nodeSelector=selector))
    state = racks(2, 2)
    assert rack_of(state, seated(state, one)) == ["r1"]


def test_pods_that_ask_for_different_things_are_not_kept_together() -> None:
    annotations = {f"{KUEUE}required-topology": RACK}
    leader = pod(pod_json("a", 1, labels=LEADER, annotations=annotations))
    assert "do not all ask for the same" in refused(racks(2, 2), leader, *gang(3, 8, **annotations))


def test_a_pod_that_comes_after_its_group_starts_alone() -> None:
    late, *_ = gang(4, 8, **{"topoplace.io/request": '{"groups": "16@rack,4@socket", "balanced": "rack"}'})
    state = racks(2, 2)
    (seat,) = seated(state, late)
    sockets = [state.topology.gpus[gpu].socket for gpu in seat.gpus]
    assert (len(set(sockets[:4])), len(set(sockets[4:]))) == (1, 1)


@pytest.mark.parametrize("seed", range(12))
def test_random_slices_are_placed_exactly_where_they_fit(seed: int) -> None:
    generator = random.Random(seed)
    sizes = [generator.randint(1, 4) for _ in range(3)]
    state = racks(*sizes)
    free = [0, 0, 0]
    for rack, name in zip(
        [r for r, n in enumerate(sizes) for _ in range(n)], state.topology.machine_names, strict=True
    ):
        if generator.random() < 0.3:
            state.set_pod(bound(f"x{name}", name, '{"main":[0]}', 1))
        else:
            free[rack] += 1
    size, count = generator.randint(1, 3), generator.randint(1, 3)
    annotations = {f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": str(size)}
    found = decide(POLICY, state, gang(size * count, 8, **annotations))
    assert isinstance(found, Refusal) == (sum(left // size for left in free) < count)
    if not isinstance(found, Refusal):
        placed = rack_of(state, found)
        assert all(len(set(placed[i : i + size])) == 1 for i in range(0, len(placed), size))


# ---- at random -----------------------------------------------------------------------------------------------------


def random_pod(name: str, generator: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if generator.random() < 0.3:
        fields["nodeSelector"] = {"pool": generator.choice("ab")}
    if generator.random() < 0.3:
        fields["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return pod_json(
        name, generator.choice((0, 1, 1, 2, 4, 8)), cpu=generator.choice(("1", "4", "20")), **fields
    )


def allowed(state: ClusterState, one: Pod, where: str, used: dict[str, int]) -> bool:
    """Say independently of the table whether a node may run a pod."""
    there = state.table.nodes[state.table.row_of[where]]
    if there is None or why_not(one.place, there):
        return False
    asked = dict(one.requests.amounts)
    return all(used.get(name, 0) + asked[name] <= there.allocatable.get(name, 0) for name in asked)


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_give_no_gpu_twice_and_obey_the_nodes(seed: int) -> None:
    generator = random.Random(seed)
    state = state_of(6)
    for i in range(6):
        taints = [{"key": "t", "effect": "NoSchedule"}] if i == 0 else []
        state.set_node(node(node_json(f"n{i}", cpu="24", labels={"pool": "ab"[i % 2]}, taints=taints)))
    for step in range(150):
        if state.pods and generator.random() < 0.4:
            state.remove_pod(generator.choice(sorted(state.pods)))
        pods = [pod(random_pod(f"p{step}-{i}", generator)) for i in range(generator.choice((1, 1, 3)))]
        found = decide(POLICY, state, pods)
        held = list(state.pods.values())
        if isinstance(found, Refusal):
            if len(pods) == 1 and not pods[0].requests.gpus:
                assert not any(
                    allowed(state, pods[0], name, usage(held, name)) for name in state.table.row_of
                )
            continue
        for seat in found:
            assert allowed(state, seat.pod, seat.node, usage(held, seat.node))
            held.append(state.assume(*seat))
        numbers = [(one.node, gpu) for one in state.pods.values() for gpu in one.gpus or ()]
        assert len(numbers) == len(set(numbers)) == sum(one.requests.gpus for one in state.pods.values())


def usage(pods: list[Pod], where: str) -> dict[str, int]:
    used: dict[str, int] = {}
    for one in pods:
        if one.node == where:
            for name, amount in one.requests.amounts:
                used[name] = used.get(name, 0) + amount
    return used


def test_reservations_take_gpus_as_their_holders_leave() -> None:
    state = state_of(1)
    state.set_pod(bound("x", "n0", '{"main":[0,1]}', 2))
    state.reserve("late", (0, 1, 2))
    assert not state.is_there("late")
    assert "too little" not in refused(
        state, pod(pod_json("a", 6))
    )  # five are free, and the pod x holds two of eight
    assert len(seated(state, pod(pod_json("a", 5)))[0].gpus) == 5
    state.remove_pod("uid-x")
    assert state.is_there("late")
    assert not {0, 1, 2} & set(seated(state, pod(pod_json("a", 5)))[0].gpus)
    state.unreserve("late")
    assert len(seated(state, pod(pod_json("a", 8)))[0].gpus) == 8


def test_a_group_that_fits_a_node_waits_for_one_for_some_time() -> None:
    state, policy = state_of(2), tp.policies.get("least-time")
    for name in ("n0", "n1"):
        state.set_pod(bound(f"on-{name}", name, '{"main":[0,1,2,3]}', 4))
    labels = {"topoplace.io/group": "team", "topoplace.io/group-size": "2"}
    pods = [pod(pod_json(f"team-{i}", 4, labels=labels)) for i in range(2)]
    found = decide(policy, state, pods, 1.0)
    assert isinstance(found, Postponed)
    assert found.reason.startswith("waits for 8 GPUs of one machine: split over 2 machines")
    assert found.seconds > 1000
    assert not isinstance(decide(policy, state, pods, 1.0 + found.seconds), Refusal)
    assert not isinstance(decide(tp.policies.get("least-time", waits=0.0), state, pods, 1.0), Refusal)
    state.remove_pod("uid-on-n1")
    seats = decide(policy, state, pods, 1.0)
    assert not isinstance(seats, Refusal)
    assert {seat.node for seat in seats} == {"n1"}
