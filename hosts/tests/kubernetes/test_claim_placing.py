"""Which devices claims get: valid ones, and of those what the policy likes best; compared with all choices."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import (
    DRIVER,
    claim_json,
    claims_of,
    class_json,
    every,
    exactly,
    node_json,
    nodes_outside,
    pod_json,
)
from topoplace.engine.policy import Policy
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.claims import claim_table
from topoplace_hosts.kubernetes.claims.claim import Claim, claim, device_class
from topoplace_hosts.kubernetes.claims.pools import resource_slice
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import pod
from topoplace_hosts.kubernetes.resource_slices import resource_slices
from topoplace_hosts.kubernetes.scheduler.claiming import alternatives
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import decide
from topoplace_hosts.kubernetes.scheduler.seats import Seat

POLICY = tp.policies.get("topo-aware")
OWN = f'device.attributes["{DRIVER}"]'
NIC = "nic.example.com"


def state_of(count: int = 1, machine: str = "dgx1-v100", *, offered: int = 0) -> ClusterState:
    """Return nodes whose GPUs are devices; offered: how many of them a device plugin offers, too."""
    found = tp.machines.get(machine)
    names = [f"n{i}" for i in range(count)]
    made = ClusterState(tp.Topology.cluster(found, count, names=names))
    for outside in nodes_outside():
        made.set_node(node(outside))
    for name in names:
        made.set_node(node(node_json(name, offered)))
        for one in resource_slices(name, found, DRIVER):
            made.set_slice(resource_slice(one))
    classes = {
        "gpu": device_class(class_json()),
        "nic": device_class(class_json("nic", f'device.driver == "{NIC}"')),
        "any": device_class(class_json("any", "true")),
    }
    made.set_classes(classes)
    return made


def add_nics(state: ClusterState, name: str, count: int, **attributes: Sequence[Any]) -> None:
    """Add network adapters to a node, with the attributes that are listed for each of them."""
    listed = [
        {
            "name": f"nic-{i}",
            "attributes": {f"{DRIVER}/{key}": values[i] for key, values in attributes.items()},
        }
        for i in range(count)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": NIC, "nodeName": name, "pool": pool, "devices": listed}
    state.set_slice(resource_slice({"metadata": {"name": f"nics-{name}"}, "spec": spec}))


def add(state: ClusterState, name: str, *requests: dict[str, Any], **fields: Any) -> None:
    state.set_claim(claim(claim_json(name, *requests, **fields)))


def seat(state: ClusterState, *claims: str, policy: Policy = POLICY, **fields: Any) -> Seat | Refusal:
    one = pod(pod_json(f"for-{'-'.join(claims)}", 0, resourceClaims=claims_of(*claims), **fields))
    found = decide(policy, state, [one])
    return found if isinstance(found, Refusal) else found[0]


def seated(state: ClusterState, *claims: str, **options: Any) -> Seat:
    found = seat(state, *claims, **options)
    assert not isinstance(found, Refusal), found.reason
    return found


def why(state: ClusterState, *claims: str, **options: Any) -> str:
    found = seat(state, *claims, **options)
    assert isinstance(found, Refusal), found
    return found.reason


def given(found: Seat, which: int = 0) -> dict[str, list[str]]:
    """Return the devices of each request of a claim."""
    written = found.claims[which].written
    assert written is not None
    names: dict[str, list[str]] = {}
    for one in written["devices"].get("results", []):
        names.setdefault(one["request"], []).append(one["device"])
    return names


def test_selectors_of_claim_and_class_choose_devices() -> None:
    state = state_of(2)
    add(state, "c", exactly("r", 3, f"{OWN}.socket == 1"))
    assert {int(one[-1]) for one in given(seated(state, "c"))["r"]} < {4, 5, 6, 7}
    add(state, "none", exactly("r", 1, f'{OWN}.model == "A100"'))
    assert why(state, "none") == (
        "0 of 5 nodes: 2 too little cpu, 1 taint node-role.kubernetes.io/control-plane, "
        "2 claim default/none, request r: too few devices"
    )
    add(state, "bad", exactly("r", 1, f'{OWN}.nothing == "A100"'))
    assert "claim default/bad, request r: the expression" in why(state, "bad")
    add(state, "classless", exactly("r", deviceClassName="gone"))
    assert "claim default/classless, request r: there is no DeviceClass gone" in why(state, "classless")


def test_all_devices_of_a_node_must_be_free() -> None:
    state = state_of(2)
    add(state, "one", exactly("r", 1))
    first = seated(state, "one")
    state.assume(*first)
    add(state, "all", every("r"))
    found = seated(state, "all")
    assert found.node != first.node
    assert sorted(given(found)["r"]) == [f"gpu-{i}" for i in range(8)]
    state.assume(*found)
    add(state, "more", every("r", f"{OWN}.socket == 0"))
    assert "too few devices" in why(state, "more")


def test_the_first_alternative_with_room_counts() -> None:
    state = state_of(1)
    alternatives = [
        {"name": "many", "deviceClassName": "gpu", "count": 9},
        {"name": "some", "deviceClassName": "gpu", "count": 6},
        {"name": "few", "deviceClassName": "gpu", "count": 1},
    ]
    for name, expected in (("a", {"r/some": 6}), ("b", {"r/few": 1})):
        add(state, name, {"name": "r", "firstAvailable": alternatives})
        found = seated(state, name)
        assert {request: len(names) for request, names in given(found).items()} == expected
        state.assume(*found)


def test_admin_access_takes_nothing_and_waits_for_nobody() -> None:
    state = state_of(1)
    add(state, "all", every("r"))
    state.assume(*seated(state, "all"))
    add(state, "monitor", every("r", adminAccess=True))
    found = seated(state, "monitor")
    assert len(given(found)["r"]) == 8
    assert all(one["adminAccess"] for one in (found.claims[0].written or {})["devices"]["results"])
    assert found.claims[0].allocation.held == frozenset()


def test_taints_need_tolerations() -> None:
    state = state_of(1)
    (slices,) = resource_slices("n0", tp.machines.get("dgx1-v100"), DRIVER)
    for one in slices["spec"]["devices"][:6]:
        one["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    state.set_slice(resource_slice(slices))
    add(state, "plain", exactly("r", 2))
    assert given(seated(state, "plain"))["r"] == ["gpu-6", "gpu-7"]
    add(state, "more", exactly("r", 3))
    assert "too few devices" in why(state, "more")
    add(state, "brave", exactly("r", 8, tolerations=[{"key": "broken", "operator": "Exists"}]))
    assert len(given(seated(state, "brave"))["r"]) == 8


def test_unsupported_devices_are_named() -> None:
    state = state_of(1)
    (slices,) = resource_slices("n0", tp.machines.get("dgx1-v100"), DRIVER)
    for one in slices["spec"]["devices"]:
        one["consumesCounters"] = [{"counterSet": "memory", "counters": {}}]
    state.set_slice(resource_slice(slices))
    add(state, "c", exactly("r"))
    assert "request r: consumesCounters is not supported" in why(state, "c")


def test_gpus_and_adapters_on_one_socket() -> None:
    state = state_of(1)
    add_nics(state, "n0", 2, socket=[{"int": 1}, {"int": 1}])
    add(
        state,
        "c",
        exactly("gpus", 2),
        exactly("nics", 1, deviceClassName="nic"),
        constraints=[{"matchAttribute": f"{DRIVER}/socket"}],
    )
    found = given(seated(state, "c"))
    assert found["nics"] == ["nic-0"]
    assert {int(one[-1]) for one in found["gpus"]} < {4, 5, 6, 7}


def test_devices_of_a_gpu_driver_that_are_no_known_gpus() -> None:
    for offered, expected in (
        (0, "given"),
        (8, "a device that is no known GPU, next to nvidia.com/gpu, is not"),
    ):
        state = state_of(1, offered=offered)
        (slices,) = resource_slices("n0", tp.machines.get("dgx1-v100"), DRIVER)
        for i, one in enumerate(slices["spec"]["devices"]):
            one.update(name=f"x-{9 - i}", attributes={})
        state.set_slice(resource_slice(slices))
        add(state, "c", exactly("r", 2))
        found = seat(state, "c")
        if expected == "given":
            assert isinstance(found, Seat)
            assert given(found)["r"] == ["x-2", "x-3"]  # by their names: nothing else is known
        else:
            assert isinstance(found, Refusal)
            assert expected in found.reason


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "claim default/missing does not exist"),
        ("", "is not made yet from its template"),
        ("unsupported", "claim default/unsupported: request 'r': capacity is not supported"),
    ],
)
def test_why_a_pod_waits_for_its_claim(name: str, message: str) -> None:
    state = state_of(1)
    add(state, "unsupported", exactly("r", capacity={"requests": {"a": "1"}}))
    one = pod(pod_json("a", 0, resourceClaims=claims_of("x")))
    found = decide(POLICY, state, [_with_claim(one, name)])
    assert isinstance(found, Refusal)
    assert message in found.reason


def _with_claim(one: Any, name: str) -> Any:
    from dataclasses import replace

    return replace(one, claims=(one.claims[0]._replace(claim=name),))


# ---- compared with all choices -------------------------------------------------------------------------------------


def valid_sets(state: ClusterState, one: Claim, nodes: Sequence[str]) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the node and the numbers of the GPUs of each valid choice, by the definitions of the API."""
    for name in nodes:
        listed = state.claims.on(name).devices
        free = [device for device in listed if not state.claims.is_held(device)]
        wanted = [alternatives[0] for alternatives in one.requests]
        pools = [
            [device for device in free if device in state.claims.matching(name, request)]
            for request in wanted
        ]
        choices = [
            combinations(pool, request.num_devices) for pool, request in zip(pools, wanted, strict=True)
        ]
        for chosen in product(*choices):
            flat = [device for group in chosen for device in group]
            if len({device.id for device in flat}) < len(flat):
                continue
            if all(_holds(constraint, wanted, chosen) for constraint in one.constraints):
                numbers = state.claims.on(name).number_of
                yield name, frozenset(numbers[device.id] for device in flat if device.id in numbers)


def _holds(constraint: Any, wanted: Sequence[Any], chosen: Sequence[Sequence[Any]]) -> bool:
    values = [
        device.attribute(constraint.attribute)
        for request, group in zip(wanted, chosen, strict=True)
        if constraint.concerns(request)
        for device in group
    ]
    if None in values:
        return False
    different = {(value.kind, value.values) for value in values}
    return len(different) == len(values) if constraint.is_distinct else len(different) <= 1


def best_set(
    policy: Policy, machine: tp.Topology, size: int, sets: Sequence[tuple[str, frozenset[int]]]
) -> tuple[str, frozenset[int]]:
    """Return what the policy prefers among machines on each of which exactly one valid set is free."""
    cluster = tp.Cluster(tp.Topology.cluster(machine, len(sets)))
    for i, (_, gpus) in enumerate(sets):
        there = cluster.topology.gpus_of[cluster.topology.machine_names[i]]
        for number, gpu in enumerate(there):
            if number not in gpus:
                cluster.drain(gpu)
    job = tp.JobGraph.ring(size).with_(bandwidth_sensitive=True, single_machine=True)
    placement = policy.place(job, cluster)
    assert placement is not None
    return sets[int(cluster.topology.machine_of[placement.gpus[0]])]


def random_claim(draw: random.Random) -> dict[str, Any]:
    selectors = (
        "true",
        f"{OWN}.socket == {draw.randrange(2)}",
        f"{OWN}.index % 2 == {draw.randrange(2)}",
        f"{OWN}.index in {sorted(draw.sample(range(8), 5))}",
    )
    requests = [
        exactly(f"r{i}", draw.choice((1, 1, 2, 3)), draw.choice(selectors))
        for i in range(draw.choice((1, 2, 2)))
    ]
    kinds = (
        [],
        [{"matchAttribute": f"{DRIVER}/socket"}],
        [{"matchAttribute": f"{DRIVER}/quad"}],
        [{"distinctAttribute": f"{DRIVER}/pair"}],
        [{"matchAttribute": f"{DRIVER}/socket", "requests": ["r0"]}],
        [{"matchAttribute": f"{DRIVER}/socket"}, {"distinctAttribute": f"{DRIVER}/pair"}],
    )
    return claim_json("c", *requests, constraints=draw.choice(kinds))


def drawn_state(draw: random.Random) -> ClusterState:
    """Return two nodes, some GPUs of which are held; attributes put pairs and fours of GPUs together."""
    state = state_of(2)
    for name in ("n0", "n1"):
        (slices,) = resource_slices(name, tp.machines.get("dgx1-v100"), DRIVER)
        for i, one in enumerate(slices["spec"]["devices"]):
            one["attributes"] |= {"pair": {"int": i // 2}, "quad": {"string": f"{i % 4 // 2}"}}
        state.set_slice(resource_slice(slices))
        held = draw.sample(range(8), draw.randrange(4))
        results = [{"request": "x", "driver": DRIVER, "pool": name, "device": f"gpu-{i}"} for i in held]
        status = {"allocation": {"devices": {"results": results}}}
        state.set_claim(claim(claim_json(f"held-{name}", exactly("x"), status=status)))
    return state


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_valid_and_none_is_better(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_table, "_SEARCH_S", (3600.0, 0.0))  # however busy this machine is
    draw = random.Random(seed)
    state = drawn_state(draw)
    value = random_claim(draw)
    state.set_claim(claim(value))
    one = state.claims.claims["default", "c"]
    sets = sorted({*valid_sets(state, one, ("n0", "n1"))}, key=lambda each: (each[0], sorted(each[1])))
    found = seat(state, "c")
    assert isinstance(found, Refusal) == (not sets), found
    if isinstance(found, Refusal):
        return
    machine = tp.machines.get("dgx1-v100")
    chosen = found.node, frozenset(gpu % 8 for gpu in found.gpus)
    assert chosen in sets
    ours, best = (
        score(machine, state, where, gpus)
        for where, gpus in (chosen, best_set(POLICY, machine, len(found.gpus), sets))
    )
    assert ours >= best - 1e-9, (chosen, best)
    state.assume(*found)
    held = state.claims.claims["default", "c"].allocation
    assert held is not None
    assert {state.claims.on(found.node).number_of[device] for device in held.held} == chosen[1]


def score(machine: tp.Topology, state: ClusterState, where: str, gpus: frozenset[int]) -> float:
    """Return the policy's utility of GPUs on an otherwise full machine."""
    cluster = tp.Cluster(machine)
    for number in set(range(8)) - gpus:
        cluster.drain(number)
    job = tp.JobGraph.ring(len(gpus)).with_(bandwidth_sensitive=True)
    placement = POLICY.place(job, cluster)
    assert placement is not None
    return placement.scores["utility"]


def test_without_the_package_that_reads_selectors_a_pod_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = state_of(1)
    add(state, "c", exactly("r"))
    monkeypatch.setitem(sys.modules, "celpy", None)
    assert "needs cel-python: pip install 'topoplace-hosts[kubernetes]'" in why(state, "c")
    state.set_classes({"gpu": device_class(class_json())._replace(selectors=())})
    assert len(given(seated(state, "c"))["r"]) == 1


@pytest.mark.parametrize("name", ["mapa-greedy", "mapa-preserve", "best-fit", "fcfs", "baseline"])
def test_other_policies_choose_for_claims_as_for_pods(name: str) -> None:
    policy = tp.policies.get(name)
    state = state_of(2)
    plain = state_of(2, offered=8)
    add(state, "c", exactly("r", 3))
    claimed = seated(state, "c", policy=policy)
    counted = decide(policy, plain, [pod(pod_json("a", 3))])
    assert not isinstance(counted, Refusal)
    assert (claimed.node, claimed.gpus) == (counted[0].node, counted[0].gpus)
    assert given(claimed)["r"] == [f"gpu-{gpu % 8}" for gpu in claimed.gpus]


def test_constraints_hold_under_other_policies_too() -> None:
    state = state_of(2)
    for name in ("mapa-greedy", "mapa-preserve", "baseline"):
        add(
            state,
            name,
            exactly("near", 2),
            exactly("far", 1, f"{OWN}.socket == 1"),
            constraints=[{"matchAttribute": f"{DRIVER}/socket"}],
        )
        found = seated(state, name, policy=tp.policies.get(name))
        assert {int(one[-1]) // 4 for names in given(found).values() for one in names} == {1}
        state.settle_claims(found.pod.uid)


def test_any_valid_devices_are_taken_when_the_policy_was_asked_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alternatives, "_MOST_QUESTIONS", 0)
    state = state_of(1)
    add(state, "c", exactly("low", 1, f"{OWN}.index < 2"), exactly("high", 2, f"{OWN}.index > 4"))
    found = seated(state, "c")
    assert given(found) == {"low": ["gpu-0"], "high": ["gpu-5", "gpu-6"]}
    assert found.gpus == (0, 5, 6)


def test_too_many_choices_end_with_a_reason() -> None:
    state = state_of(1)
    add_nics(state, "n0", 40, slot=[{"int": i // 2} for i in range(40)])
    add(
        state,
        "c",
        *[exactly(f"r{i}", 7, deviceClassName="nic") for i in range(3)],
        constraints=[{"distinctAttribute": f"{DRIVER}/slot"}],
    )
    assert "choices of devices" in why(state, "c")  # 21 of 20 slots


def told(state: ClusterState, name: str, version: int, *gpus: int) -> None:
    """Let the API server tell of a claim in this version, with these GPUs of n0."""
    results = [{"request": "r", "driver": DRIVER, "pool": "n0", "device": f"gpu-{i}"} for i in gpus]
    status = {"allocation": {"devices": {"results": results}}} if gpus else {}
    value = claim_json(name, exactly("r", 2), status=status)
    value["metadata"]["resourceVersion"] = str(version)
    state.set_claim(claim(value))


def test_what_was_decided_stays_until_it_is_known_how_it_ended() -> None:
    state = state_of(1)
    told(state, "c", 5)
    found = seated(state, "c")
    state.assume(*found)
    held = state.cluster.gpus_of("claim/uid-c")
    assert len(held) == 2
    told(state, "c", 6)  # a finalizer was written, nothing more
    assert state.cluster.gpus_of("claim/uid-c") == held
    state.remove_pod(found.pod.uid)  # the pod is gone, and its claim may be written all the same
    assert state.cluster.gpus_of("claim/uid-c") == held
    state.settle_claims(found.pod.uid)
    assert state.cluster.gpus_of("claim/uid-c") == ()
    assert state.claims.claims["default", "c"].version == "6"


def test_news_that_are_older_than_what_is_known_change_nothing() -> None:
    state = state_of(1)
    told(state, "c", 9, 3, 4)
    told(state, "c", 8)
    assert state.cluster.gpus_of("claim/uid-c") == (3, 4)
    told(state, "c", 10)
    assert state.cluster.gpus_of("claim/uid-c") == ()


def test_a_claim_that_is_gone_does_not_come_back_when_its_binding_is_told_later() -> None:
    state = state_of(1)
    add(state, "c", exactly("r", 8))
    found = seated(state, "c")
    state.assume(*found)
    state.remove_claim(("default", "c"))
    told(state, "c", 3, *range(8))  # as it was written, before it was deleted
    assert state.cluster.num_free == 8
    add(state, "d", exactly("r", 8))
    assert len(given(seated(state, "d"))["r"]) == 8
