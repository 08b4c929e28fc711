"""`MachineOptions` against a look at every option of every machine, each read anew."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.cluster.cluster import Cluster
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.engine.machines.machine_conditions import Conditions, MachineState, Sight
from topoplace.engine.machines.machine_options import MachineOptions, Option, RuleOptions
from topoplace.topology.topology import Topology

MACHINES = 4
UTILITIES = st.sampled_from([0.0, 0.25, 0.5, 0.75])
OPTIONS = st.lists(st.tuples(st.integers(0, 3).map(float), UTILITIES), max_size=3).map(sorted)
RULES = st.lists(OPTIONS, min_size=4, max_size=4)
"""The options of a machine with no GPU free, with the first, with the second, and with both."""
GPUS = st.integers(0, 2 * MACHINES - 1)
STEPS = st.lists(GPUS | UTILITIES, max_size=30)


@example([[], [(0.0, 0.0), (3.0, 0.5)], [(1.0, 0.5)], [(2.0, 0.5)]], [0, 3, 0.5], True)
@example([[], [], [], [(0.0, 0.0), (1.0, 0.5)]], [1, 0.5], False)
@given(RULES, STEPS, st.booleans())
def test_options_of_machines_that_change(
    rule: list[list[tuple[float, float]]], steps: list[Any], shared: bool
) -> None:
    """GPUs are drained and undrained between questions; a lower floor finds what a higher one passed over."""
    machine = Topology.from_links(2, [(0, 1, 25.0)], 12.0)
    cluster = Cluster(Topology.cluster(machine, count=MACHINES), classes=shared)
    options_of = [
        tuple(Option((order,), (i,), utility, None) for i, (order, utility) in enumerate(options))
        for options in rule
    ]
    conditions = Conditions(cluster, MachineClasses(cluster.topology), Sight())
    kept = MachineOptions(
        conditions,
        (-1, -1),
        RuleOptions(conditions, lambda _, state: options_of[state.free]),
        lambda _, option: {"utility": option.utility},
    )
    for step in (*steps, 0.25, 0.0):
        if isinstance(step, int):
            change = cluster.undrain if step in cluster.drained_gpus() else cluster.drain
            change(step)
            continue
        free = cluster.free_gpus()
        everything = sorted(
            (option.order, number, option.gpus, option.utility)
            for number in range(MACHINES)
            for option in options_of[(2 * number in free) + 2 * (2 * number + 1 in free)]
        )
        found = kept.best(step)
        expected = next((entry for entry in everything if entry[3] >= step), None)
        assert (found and (found[1].option.order, found[0], found[1].option.gpus)) == (
            expected and expected[:3]
        )
        ranked = [
            (one.option.order, number, one.option.gpus, one.scores["utility"])
            for number, one in kept.ranked()
        ]
        assert ranked == everything


def test_the_best_option_of_enough_utility_is_found_behind_many_machines_without_one() -> None:
    """Machines of twelve conditions; the first one also has a late option of enough utility."""
    cluster = Cluster(Topology.cluster(Topology.from_links(4, [], 12.0), count=12))
    for gpu in range(48):
        if not (gpu // 4 + 1) >> gpu % 4 & 1:
            cluster.drain(gpu)  # so that the free GPUs of machine i, as a mask, are i + 1

    def evaluate(_: object, state: MachineState) -> list[Option]:
        first = Option((float(state.free),), (0,), 0.5 if state.free in (9, 12) else 0.0, None)
        return [first, Option((100.0,), (1,), 0.5, None)] if state.free == 1 else [first]

    def no_scores(_class: object, _option: Option) -> dict[str, float]:
        return {}

    conditions = Conditions(cluster, MachineClasses(cluster.topology), Sight())
    found = MachineOptions(conditions, (-1, -1), RuleOptions(conditions, evaluate), no_scores).best(0.5)
    assert found is not None
    assert (found[0], found[1].option.order) == (8, (9.0,))


class Data:
    """The details of an option, of which the living ones can be counted."""


def test_options_of_conditions_without_machines_are_not_kept_for_ever() -> None:
    """A machine goes through its 1024 sets of free GPUs, and then through some of them again."""
    cluster = Cluster(Topology.cluster(Topology.from_links(10, [], 12.0), count=2))
    living = WeakSet[Data]()

    def evaluate(_: object, state: MachineState) -> list[Option]:
        data = Data()
        living.add(data)
        return [Option((float(state.free),), (0,), 0.0, data)]

    def no_scores(_class: object, _option: Option) -> dict[str, float]:
        return {}

    conditions = Conditions(cluster, MachineClasses(cluster.topology), Sight())
    kept = MachineOptions(conditions, (-1, -1), RuleOptions(conditions, evaluate), no_scores)
    for free in (*range(1024), *range(100)):
        for gpu in range(10):
            (cluster.undrain if free >> gpu & 1 else cluster.drain)(gpu)
        found = kept.best()
        assert found is not None
        assert (found[0], found[1].option.order) == (0, (float(free),))
    assert len(living) < 400


@pytest.mark.parametrize(
    "name", [n for n in tp.policies.names() if isinstance(tp.policies.get(n), MachinePolicy)]
)
def test_machines_are_ranked_once_each_and_that_of_place_comes_first(name: str) -> None:
    small, large = Topology.from_links(2, [(0, 1, 25.0)], 12.0), tp.machines.get("minsky")
    cluster = Cluster(Topology.cluster([small, large] * 3))
    cluster.allocate("running", [0, 2])
    policy, ring = tp.policies.get(name), tp.JobGraph.ring(2).with_(single_machine=True)
    assert isinstance(policy, MachinePolicy)
    placement, ranked = policy.place(ring, cluster), list(policy.ranked_machines(ring, cluster))
    assert placement is not None
    assert ranked[0][0] == cluster.topology.machine_of[placement.gpus[0]]
    assert sorted(machine for equal in ranked for machine in equal) == [1, 2, 3, 4, 5]
    assert not list(policy.ranked_machines(tp.JobGraph.ring(5), cluster))
