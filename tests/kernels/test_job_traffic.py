"""What collectives send on machines whose times are known by hand, and the arguments that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from gang_cases import Collective, Gang, gangs, job_of, machines
from topoplace import kernels


def seconds(network: kernels.CollectiveNetwork, one: Collective, vertex_of: list[int], **how: Any) -> float:
    (found,) = network.times(job_of([[one]]), vertex_of, **how)
    return found.seconds


def test_a_ring_has_a_channel_for_each_adapter() -> None:
    """Of machines with 4 adapters of 1 GB/s; inside, rings carry 8 GB/s."""
    network = machines([4, 4])
    ring = Collective("ring", range(8), 8.0)
    assert seconds(network, ring, list(range(8))) == pytest.approx(8 / 4)
    assert seconds(network, Collective("ring", [0, 1], 8.0), [0, 4]) == pytest.approx(8)
    assert seconds(network, Collective("ring", range(5), 8.0), [0, 1, 2, 3, 4]) == pytest.approx(8)
    assert seconds(network, Collective("ring", range(4), 8.0), [0, 1, 2, 3]) == pytest.approx(1)
    assert seconds(machines([4, 4], sharing=2), ring, list(range(8))) == pytest.approx(8 / 2)
    assert seconds(network, ring, list(range(8)), planned=False) == pytest.approx(8)


def test_pairs_and_sends_go_their_own_ways() -> None:
    network = machines([2, 2])
    assert seconds(network, Collective("pairs", range(4), 2.0), [0, 1, 2, 3]) == pytest.approx(2)
    assert seconds(network, Collective("sends", range(3), 2.0), [0, 2, 1]) == pytest.approx(2)
    given_each = kernels.JobCollectives([1], [3], [2], [0, 1], [2.0], [3.0, 0.5])
    flows, rings = network.flows(given_each, [0, 2])
    assert (flows.there.tolist(), flows.back.tolist()) == ([0.5], [3.0])
    assert rings[0].collective == -1


def test_rings_are_reduced_in_switches() -> None:
    network = machines([4])
    reducing = kernels.SwitchRates(np.full(4, 8.0), np.full(4, 10.0), np.full(4, 11.0))
    places = kernels.Places(*(np.zeros(4, np.int32) for _ in range(7)))._replace(
        local=np.arange(4, dtype=np.int32)
    )
    switched = kernels.CollectiveNetwork(network.network, places, reducing, np.zeros(4), [None])
    (found,) = switched.times(job_of([[Collective("reduce", range(4), 11.0)]]), [0, 1, 2, 3])
    assert found.rings.by_switches
    assert found.seconds == pytest.approx(1.0)
    assert kernels.reduced_bandwidth(4, 10.0, 11.0) == 11.0
    assert kernels.reduced_bandwidth(2, 9.0, 11.0) == pytest.approx(6.0)


@given(gangs())
def test_times_are_those_of_the_flows(gang: Gang) -> None:
    n = gang.network.network.num_vertices
    tasks: Any = gang.places.tasks
    if tasks.size > n:
        return
    vertex_of = np.arange(tasks.size)[::-1]
    flows, rings = gang.network.flows(gang.job, vertex_of)
    times = gang.network.times(gang.job, vertex_of)
    ports = gang.network.network.phase_times(flows)
    assert [one.ports for one in times] == ports
    assert [one.rings for one in times] == rings
    assert [one.seconds for one in times] == [
        max(a.seconds, b.seconds) for a, b in zip(ports, rings, strict=True)
    ]


RIGHT: dict[str, Any] = {
    "phase_ends": [1, 2],
    "kinds": [1, 3],
    "ends": [2, 5],
    "tasks": [0, 1, 0, 1, 2],
    "gigabytes": [1.0, 2.0],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase_ends": [1, 3]}, "phase_ends ends at 3 of 2"),
        ({"phase_ends": [1.5, 2]}, r"phase_ends\[0\] = 1.5 is not an integer"),
        ({"kinds": [1, 5]}, r"kinds\[1\] = 5 is not in 0..4"),
        ({"kinds": [1, -1]}, r"kinds\[1\] = -1 is not in 0..4"),
        ({"kinds": [1]}, "phase_ends ends at 2 of 1"),
        ({"ends": [1, 5]}, r"ends\[0\] = 1: a collective of fewer than two"),
        ({"ends": [2, 4]}, "ends ends at 4 of 5"),
        ({"tasks": [0, 1, 0, 1, 3]}, r"tasks\[4\] = 3: out of range"),
        ({"tasks": [0, 1, 0, 1, 1]}, r"tasks\[4\] = 1: twice in one collective"),
        ({"gigabytes": [1.0, -2.0]}, r"gigabytes\[1\] = -2.*: not in 0..1e18"),
        ({"gigabytes": [1.0]}, "gigabytes has 1 entries, not 2"),
        ({"received": [1.0]}, "received has 1 entries, not 5"),
        ({"received": [-1, -1, 2, 2, -1]}, r"received\[4\] = -1.*: neither"),
    ],
)
def test_wrong_collectives_are_named(changes: dict[str, Any], message: str) -> None:
    network = machines([2, 2])
    assert len(network.times(kernels.JobCollectives(**RIGHT), [0, 1, 2])) == 2
    with pytest.raises(ValueError, match=message):
        network.times(kernels.JobCollectives(**{**RIGHT, **changes}), [0, 1, 2])


def test_wrong_places_of_tasks_are_named() -> None:
    network, job = machines([2, 2]), kernels.JobCollectives(**RIGHT)
    for vertex_of, message in (
        ([0, 1, 4], r"vertex_of\[2\] = 4: out of range"),
        ([0, 1, 1], r"vertex_of\[2\] = 1: of two tasks"),
        ([0, 1], r"tasks\[4\] = 2: out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            network.times(job, vertex_of)
    with pytest.raises(ValueError, match="others are flows of another network"):
        network.times(job, [0, 1, 2], others=kernels.FlowCounts(machines([2, 2]).network))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": [0, 1]}, r"machine\[1\] = 1: out of range"),
        ({"domain": [0, 3]}, r"domain\[1\] = 3: out of range"),
        ({"adapter": [0, 9]}, r"adapter\[1\] = 9: out of range"),
        ({"local": [0]}, "local has 1 entries, not 2"),
    ],
)
def test_wrong_networks_are_named(changes: dict[str, Any], message: str) -> None:
    ports = kernels.PortNetwork([1.0, 1.0], [[0, 1]], [0], [[0, 0]], [[-1, -1]])
    right = {name: [0, 0] for name in kernels.Places._fields} | {"local": [0, 1]}
    zeros = kernels.SwitchRates(*(np.zeros(2) for _ in range(3)))
    assert kernels.CollectiveNetwork(ports, kernels.Places(**right), zeros, [0, 0], [None])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        kernels.CollectiveNetwork(ports, kernels.Places(**(right | changes)), zeros, [0, 0], [None])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"reducing\[1\] = nan is below 0, or not a number"):
        kernels.CollectiveNetwork(
            ports, kernels.Places(**right), zeros._replace(reducing=[0, np.nan]), [0, 0], [None]
        )  # type: ignore[arg-type]


def test_wrong_rates_are_named() -> None:
    ring = kernels.RingNetwork(
        2, [9], [kernels.Route(0, 1, 0, [(0, 1000)]), kernels.Route(1, 0, 0, [(0, 1000)])]
    )
    rules = [kernels.ChannelRules([3])]
    assert kernels.RingRates(ring, [0, 0], rules, rules)
    with pytest.raises(ValueError, match=r"class_of\[1\] = 1: there is no such class"):
        kernels.RingRates(ring, [0, 1], rules, rules)
    with pytest.raises(ValueError, match="no slower rules"):
        kernels.RingRates(ring, [0, 0], rules, [])
