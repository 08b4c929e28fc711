"""A pod of a group that runs is lost: the one that replaces it gets the place of fewest moves, and no other moves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import GPU, node_json, pod_json
from kubernetes_scheduler import Running, where
from thoroughness import thorough
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.objects.annotations import GROUP, GROUP_SIZE, JOB_INDEX, REQUEST
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import Pod, pod
from topoplace_hosts.kubernetes.scheduler import preempting
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import decide
from topoplace_hosts.kubernetes.scheduler.waiting import WaitingPods
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import until

POLICY = tp.policies.get("least-time")
RACK = '{"within": "rack"}'


def racks(count: int, size: int = 4, machine: str = "dgx1-v100") -> tp.Topology:
    """Return machines n0, n1, … in racks of `size`."""
    names = tuple(f"n{i}" for i in range(count))
    level = tp.Level("rack", tuple(f"r{i // size}" for i in range(count)))
    return tp.Topology.cluster(
        tp.machines.get(machine), count, names=names, fabric=tp.Fabric(names, (level,))
    )


def member(rank: int, name: str = "", size: int = 4, gpus: int = 4, ask: str = RACK, **fields: Any) -> Any:
    """Return a pod of the group g, as a StatefulSet names it."""
    labels = {GROUP: "g", GROUP_SIZE: str(size), **fields.pop("labels", {})}
    annotations = {REQUEST: ask} | fields.pop("annotations", {})
    made = pod_json(name or f"g-{rank}", gpus, labels=labels, annotations=annotations, **fields)
    made["metadata"]["uid"] = f"{made['metadata']['name']}-{next(UIDS)}"
    return made


UIDS = iter(range(10**9))


@dataclass
class Gang:
    """A group of pods in a cluster state; each pod waits, runs, or is gone."""

    state: ClusterState
    made: list[Any]
    waiting: WaitingPods = field(default_factory=lambda: WaitingPods("topoplace"))
    running: dict[str, Pod] = field(default_factory=dict[str, Pod])

    def __post_init__(self) -> None:
        self.add(*self.made)

    def add(self, *made: Any) -> list[str]:
        """Let pods wait, decide for all that wait, and return why pods still wait."""
        for one in made:
            self.waiting.set_pod(pod(one))
        reasons: list[str] = []
        for unit in self.waiting.units(self.state.groups):
            found = (
                Refusal(unit.reason) if unit.reason else decide(POLICY, self.state, unit.pods, rest=unit.rest)
            )
            if isinstance(found, Refusal):
                reasons.append(found.reason)
                continue
            for seat in found:
                bound = self.state.assume(*seat)
                self.state.set_pod(bound)
                self.waiting.note_started(bound)
                self.waiting.remove_pod(bound.uid)
                self.running[bound.name] = bound
        return reasons

    def lose(self, *names: str) -> None:
        for name in names:
            self.state.remove_pod(self.running.pop(name).uid)

    def at(self, name: str) -> tuple[int, ...]:
        return self.state.cluster.gpus_of(self.running[name].job_id)

    def nodes(self) -> dict[str, str]:
        return {name: one.node for name, one in self.running.items()}


def state_of(topology: tp.Topology, **fields: Any) -> ClusterState:
    made = ClusterState(topology)
    for name in topology.machine_names:
        made.set_node(node(node_json(name, len(topology.gpus_of[name]), **fields)))
    return made


def a_gang(count: int = 8, size: int = 4, **fields: Any) -> Gang:
    gang = Gang(state_of(racks(count)), [member(i, size=size, **fields) for i in range(size)])
    assert len(gang.running) == size
    return gang


def taken(state: ClusterState, name: str, gpus: Iterable[int]) -> None:
    """Let a pod of another job have these GPUs of one node."""
    own = list(gpus)
    where = state.topology.machine_names[int(state.topology.machine_of[own[0]])]
    state.assume(pod(pod_json(name, len(own))), where, own)


def rack_of(name: str) -> int:
    return int(name.removeprefix("n")) // 4


# ---- where it was --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        ("g-{}", "g-{}", {}),
        ("g-{}-x8k2p", "g-{}-abcde", {JOB_INDEX: "{}"}),
        ("g-x{}k2p", "g-a{}cde", {}),
    ],
    ids=["StatefulSet", "indexed Job", "without ranks"],
)
def test_lost_pods_come_back_to_where_they_were(old: str, new: str, labels: dict[str, str]) -> None:
    def named(name: str, rank: int) -> Any:
        own = {key: value.format(rank) for key, value in labels.items()}
        return member(rank, name.format(rank), labels=own)

    gang = Gang(state_of(racks(8)), [named(old, i) for i in range(4)])
    before = {i: gang.at(old.format(i)) for i in range(4)}
    gang.lose(old.format(1), old.format(3))
    assert gang.add(named(new, 1), named(new, 3)) == []
    assert {i: gang.at(new.format(i)) for i in (1, 3)} == {i: before[i] for i in (1, 3)}
    assert gang.state.lost == {("default", "g"): {}}
    gang.lose(*list(gang.running))
    assert gang.state.lost == {}


def test_a_rank_that_comes_back_before_another_gets_its_own_place() -> None:
    gang = a_gang()
    before = gang.at("g-3")
    gang.lose("g-1", "g-3")
    assert gang.add(member(3)) == []
    assert gang.at("g-3") == before


def test_the_place_is_given_to_others_only_until_the_pod_ends() -> None:
    gang = a_gang()
    before = gang.at("g-2")
    gang.lose("g-2")
    taken(gang.state, "other", before)
    assert gang.add(member(2)) == []
    assert gang.at("g-2") != before
    assert {rack_of(one) for one in gang.nodes().values()} == {rack_of(gang.running["g-0"].node)}


# ---- elsewhere, by tp.repair ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        lambda name: node_json(name, ready=False),
        lambda name: node_json(name, taints=[{"key": "gone", "effect": "NoExecute"}]),
        lambda name: node_json(name, unschedulable=True),
        lambda name: node_json(name, 7),
        lambda name: node_json(name, cpu="500m"),
    ],
    ids=["not ready", "taint", "cordon", "a GPU less", "too few CPUs"],
)
def test_a_node_in_trouble_is_left_for_another_of_the_rack(trouble: Callable[[str], Any]) -> None:
    gang = a_gang()
    name = gang.running["g-1"].node
    rest = {one: gang.at(one) for one in gang.running if gang.running[one].node != name}
    lost = [one for one in gang.running if one not in rest]
    gang.lose(*lost)
    gang.state.set_node(node(trouble(name)))
    assert gang.add(*(member(int(one[2:])) for one in lost)) == []
    assert name not in gang.nodes().values()
    assert {rack_of(one) for one in gang.nodes().values()} == {rack_of(name)}
    assert {one: gang.at(one) for one in rest} == rest


@pytest.mark.parametrize(("gpus", "is_same"), [(1, True), (2, False)])
def test_without_a_required_level_it_stays_near(gpus: int, is_same: bool) -> None:
    """All four pods are on one node. A GPU of the lost one is taken: the node has others, else another of the rack."""
    gang = a_gang(gpus=gpus, ask="{}")
    (home,) = set(gang.nodes().values())
    lost = gang.at("g-1")
    gang.lose("g-1")
    taken(gang.state, "other", lost[:1])
    taken(gang.state, "more", gang.state.topology.gpus_of["n7"][:6])
    assert gang.add(member(1, gpus=gpus, ask="{}")) == []
    assert (gang.running["g-1"].node == home) is is_same
    assert rack_of(gang.running["g-1"].node) == rack_of(home)


def test_the_choice_is_that_of_repair() -> None:
    topology = racks(8)
    gang = a_gang()
    gpus = [gpu for i in range(4) for gpu in gang.at(f"g-{i}")]
    gang.lose("g-1")
    gang.state.set_node(node(node_json("n0", ready=False)))
    gang.state.set_node(node(node_json(topology.machine_names[gpus[4] // 8], ready=False)))
    gang.add(member(1))
    cluster = tp.Cluster(topology)
    job = tp.JobGraph.ring(16).with_(within="rack", bandwidth_sensitive=True).grouped(4, within="machine")
    cluster.record("g", gpus, job)
    cluster.drain("n0")
    cluster.drain(topology.machine_names[gpus[4] // 8])
    plan = tp.repair("g", cluster, lost=gpus[4:8]).plans[0]
    now = [gpu for i in range(4) for gpu in gang.at(f"g-{i}")]
    assert [task for task, gpu in enumerate(now) if gpu != gpus[task]] == sorted(plan.replaced)
    assert len({gpu // 8 for gpu in now} - {gpu // 8 for gpu in gpus}) == plan.moved.machines


def test_if_others_had_to_move_the_event_says_which() -> None:
    gang = a_gang()
    home = rack_of(gang.running["g-0"].node)
    gang.lose("g-3")
    free = [gpu for gpu in range(64) if gang.state.cluster.owner(gpu) is None and gpu // 32 == home]
    for gpu in free:
        taken(gang.state, f"other{gpu}", [gpu])
    said = "it fits only if pods of its group moved (g-0, g-1, g-2), and the scheduler moves none that runs"
    assert gang.add(member(3)) == [said]
    for gpu in free[:4]:
        gang.state.remove_pod(f"uid-other{gpu}")
    if len({gpu // 8 for gpu in free[:4]}) == 1:
        assert gang.add() == []


def test_if_nothing_is_free_at_all_it_waits() -> None:
    gang = a_gang(4)
    gang.lose("g-3")
    for gpu in range(32):
        if gang.state.cluster.owner(gpu) is None:
            taken(gang.state, f"other{gpu}", [gpu])
    assert gang.add(member(3)) == ["0 of 4 nodes: 4 too little nvidia.com/gpu"]


def test_a_slice_that_is_lost_moves_as_a_whole() -> None:
    """Four pods of 8 GPUs, two in each rack of two; a node of the second rack is gone, and the third rack is free."""
    ask = '{"groups": "16@rack"}'
    topology = racks(6, 2)
    gang = Gang(state_of(topology), [member(i, gpus=8, ask=ask) for i in range(4)])
    first, second = ({gang.running[f"g-{i}"].node for i in pair} for pair in ((0, 1), (2, 3)))
    gone = gang.running["g-2"].node
    gang.lose("g-2", "g-3")
    gang.state.set_node(node(node_json(gone, ready=False)))
    assert gang.add(member(2, gpus=8, ask=ask), member(3, gpus=8, ask=ask)) == []
    now = {gang.running[f"g-{i}"].node for i in (2, 3)}
    assert now == set(topology.machine_names) - first - second
    assert {gang.running[f"g-{i}"].node for i in (0, 1)} == first


def test_a_pod_that_still_ends_keeps_its_gpus() -> None:
    """The controller of a Job makes the new pod while the old one ends."""
    gang = a_gang()
    before = gang.at("g-1")
    ending = member(1, nodeName=gang.running["g-1"].node, phase="Running")
    ending["metadata"] |= {"uid": gang.running["g-1"].uid, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    gang.state.set_pod(pod(ending))
    assert gang.add(member(1, "g-1")) == []
    assert not set(gang.at("g-1")) & set(before)
    assert {rack_of(one) for one in gang.nodes().values()} == {rack_of(gang.running["g-0"].node)}


def test_after_a_restart_it_is_still_beside_its_group() -> None:
    """The scheduler starts between the loss and the new pod, and does not know where the old one was."""
    gang = a_gang()
    gang.lose("g-1", "g-2")
    again = Gang(state_of(racks(8)), [])
    for name, one in gang.running.items():
        again.state.set_pod(one)
        again.waiting.note_started(one)
        again.running[name] = one
    assert again.add(member(1), member(2)) == []
    assert len({rack_of(one) for one in again.nodes().values()}) == 1


def test_a_group_that_is_lost_as_a_whole_starts_anew_together() -> None:
    gang = a_gang()
    gang.lose(*list(gang.running))
    assert gang.add(*(member(i) for i in range(4))) == []
    assert len({rack_of(one) for one in gang.nodes().values()}) == 1


def test_what_repairs_do_not_honour_is_placed_by_itself() -> None:
    ask = '{"balanced": "rack"}'
    gang = a_gang(ask=ask)
    gang.lose("g-1")
    taken(gang.state, "other", gang.state.topology.gpus_of["n7"][:4])
    assert gang.add(member(1, ask=ask)) == []


def test_pods_of_lower_priority_end_where_the_group_is() -> None:
    gang = a_gang(priority=9)
    home = rack_of(gang.running["g-0"].node)
    gang.lose("g-3")
    for gpu in range(64):
        if gang.state.cluster.owner(gpu) is None:
            taken(gang.state, f"other{gpu}", [gpu])
    high = pod(member(3, priority=9))
    found = preempting.room_for(POLICY, gang.state, [high], [high])
    assert found is not None
    assert {rack_of(seat.node) for seat in found[0]} == {home}


# ---- an oracle, and 200 kills --------------------------------------------------------------------------------------


def test_random_losses_agree_with_a_count_of_what_is_free() -> None:
    """All lost pods get a seat in their rack exactly if it has room, where they were if that is free; none moves."""
    seated = waited = 0
    for seed in range(thorough(2_000, 20)):
        rng = random.Random(seed)
        each = rng.choice([1, 2, 4, 8])
        gang = a_gang(gpus=each)
        state, home = gang.state, rack_of(gang.running["g-0"].node)
        lost = rng.sample(sorted(gang.running), rng.randint(1, 3))
        before = {name: gang.at(name) for name in gang.running}
        nodes = {name: gang.running[name].node for name in lost}
        gang.lose(*lost)
        share = rng.choice([0.2, 0.5, 0.8])
        for gpu in range(64):
            if state.cluster.owner(gpu) is None and rng.random() < share:
                taken(state, f"other{gpu}", [gpu])
        closed = {f"n{i}" for i in range(8) if rng.random() < 0.2}
        for name in closed:
            state.set_node(node(node_json(name, ready=False)))
        open_gpus = [gpu for gpu in range(64) if f"n{gpu // 8}" not in closed]
        free = [gpu for gpu in open_gpus if state.cluster.owner(gpu) is None]
        room = sum(sum(gpu // 8 == i for gpu in free) // each for i in range(4 * home, 4 * home + 4))
        reasons = gang.add(*(member(int(name[2:]), gpus=each) for name in lost))
        assert len(reasons) == max(0, len(lost) - room), (seed, reasons)
        seated += len(lost) - len(reasons)
        waited += len(reasons)
        for name, own in before.items():
            if name not in lost or (set(own) <= set(free) and nodes[name] not in closed and not reasons):
                assert gang.at(name) == own, seed
        assert {rack_of(one) for one in gang.nodes().values()} == {home}, seed
    assert min(seated, waited) > 3


TROUBLE: tuple[Callable[[Any], None], ...] = (
    lambda one: one["status"]["conditions"][0].update(status="False"),
    lambda one: one["spec"].update(unschedulable=True),
    lambda one: one["spec"].update(taints=[{"key": "gpu", "effect": "NoExecute"}]),
    lambda one: one["status"]["allocatable"].update({GPU: "7"}),
)


def test_a_pod_of_a_gang_killed_again_and_again() -> None:
    """Nodes fail and other pods come and go: no other pod moves, no GPU is given twice, the rack stays the same."""
    rng = random.Random(58)
    others: list[str] = []
    with ApiServer() as api:
        topology = racks(8)
        for name in topology.machine_names:
            api.store.add("nodes", node_json(name))
        running = Running(api, topology)
        names = [f"g-{i}-0" for i in range(4)]

        def made(rank: int) -> Any:
            return member(rank, names[rank], gpus=2, labels={JOB_INDEX: str(rank)})

        def gpus(name: str) -> set[tuple[str, int]]:
            return {(where, gpu) for where, gpu, holder in api.store.held() if holder == name}

        def churn(number: int) -> None:
            """Another pod comes or goes; at most four of them leave room in each rack."""
            if len(others) < 4:
                others.append(f"other{number}")
                api.store.add("pods", pod_json(others[-1], rng.choice([1, 2, 4])))
            else:
                api.store.remove("pods", others.pop(rng.randrange(4)))
            until(lambda: not api.store.waiting())

        for rank in range(4):
            api.store.add("pods", made(rank))
        until(lambda: not api.store.waiting())
        home, same = rack_of(where(api, names[0])), 0
        kills = thorough(1_000, 60)
        for kill in range(kills):
            rank = rng.randrange(4)
            old, place, node_name = names[rank], gpus(names[rank]), where(api, names[rank])
            rest = {name: gpus(name) for name in names if name != old}
            is_sick, changes = rng.random() < 0.3, running.scheduler.state.freed
            if is_sick:
                api.store.change("nodes", node_name, rng.choice(TROUBLE))
                until(lambda changes=changes: running.scheduler.state.freed > changes)
            rng.choice((api.store.finish, lambda name: api.store.remove("pods", name)))(old)
            if rng.random() < 0.5:
                churn(kill)
            is_free = not is_sick and not place & {(there, gpu) for there, gpu, _ in api.store.held()}
            names[rank] = f"g-{rank}-{kill + 1}"
            api.store.add("pods", made(rank))
            until(lambda name=names[rank]: where(api, name) != "")
            assert rack_of(where(api, names[rank])) == home
            assert (gpus(names[rank]) == place) == is_free, kill
            assert {name: gpus(name) for name in rest} == rest
            same += is_free
            if is_sick:
                changes = running.scheduler.state.freed
                api.store.change(
                    "nodes", node_name, lambda one: one.update(node_json(one["metadata"]["name"]))
                )
                until(lambda changes=changes: running.scheduler.state.freed > changes)
        running.stop()
        assert api.store.twice == []
        assert 0.4 * kills < same < 0.8 * kills
