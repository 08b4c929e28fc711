"""What a machine offers to a part of a job, alone and in columns, and what rules say of conditions of machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import topoplace as tp
from topoplace.engine.gangs.offers import MachineOffer, Offers, offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClass
from topoplace.engine.machines.machine_conditions import ConditionTable, MachineState, RankedMachines, Sight

PARTS = (0b0001, 0b0011, 0b1111)


@pytest.mark.parametrize(
    ("partitions", "max_tasks", "offered"),
    [
        ((), 3, [0b0001, 0b1011, 0b1011, 0b1011]),  # whole, but for one task
        ((), 2, [0b0001, 0b0011, 0b0011, 0b0011]),  # the lowest ones
        (PARTS, 4, [0b0001, 0b0011, 0b0011, 0b1111]),
        (PARTS, 1, [0b0001, 0b0001, 0b0001, 0b0001]),
        ((0b1111,), 4, [0, 0, 0, 0b1111]),
        ((0b1111,), 3, [0, 0, 0, 0]),
    ],
)
def test_gpus_that_a_machine_offers_to_one_to_four_tasks(
    partitions: tuple[int, ...], max_tasks: int, offered: list[int]
) -> None:
    offer = MachineOffer(7, 0b1111 if partitions else 0b1011, partitions, max_tasks)
    assert [offer.gpus_for(count) for count in (1, 2, 3, 4)] == offered
    assert offer.size == offered[3].bit_count()
    assert offer.single_gpus == (0b1011 if not partitions else 0b0001 if 1 in partitions else 0)


def test_offers_in_columns() -> None:
    kinds = [MachineOffer(-1, 0b111, (), 3), MachineOffer(-1, 0b1111, PARTS, 4), MachineOffer(-1, 0b1, (), 1)]
    hosted = np.array([2, 9, 9, 9, 1])
    offers = Offers(np.array([1, 3, 4, 6, 8]), np.array([0, 1, 0, 2, 0]), kinds, hosted)
    assert offers.sizes.tolist() == [2, 4, 3, 1, 1]
    assert not offers.is_simple
    assert list(offers) == [
        *(MachineOffer(1, 0b111, (), 2), MachineOffer(3, 0b1111, PARTS, 4), MachineOffer(4, 0b111, (), 3)),
        *(MachineOffer(6, 0b1, (), 1), MachineOffer(8, 0b111, (), 1)),
    ]
    assert [one.machine for one in offers.smallest_first()] == [6, 8, 1, 4, 3]
    assert [one.machine for one in offers[1:3]] == [3, 4]
    assert sorted((one.usable, one.max_tasks, number) for one, number in offers.kinds()) == [
        *[(0b1, 1, 1), (0b111, 1, 1), (0b111, 2, 1), (0b111, 3, 1), (0b1111, 4, 1)],
    ]
    assert [(one.machine, one.usable, one.partitions, one.max_tasks) for one in offers.of_gpus(0b11)] == [
        *[(1, 0b11, (), 2), (3, 0b11, (0b11,), 2), (4, 0b11, (), 2)],
    ]
    assert [one.machine for one in offers.of_gpus(0b110)] == [1, 4]
    assert [one.machine for one in offers.of_gpus(0b1)] == [1, 3, 4, 6, 8]
    unlimited = Offers(np.array([1, 3, 4]), np.array([0, 1, 0]), kinds[:2], None)
    assert [(one.usable, one.max_tasks, number) for one, number in unlimited.kinds()] == [
        *[(0b111, 3, 2), (0b1111, 4, 1)],
    ]


def test_a_rule_is_asked_once_for_each_condition_until_that_was_forgotten() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=3))
    view, asked = cluster.view(ClusterView), list[int]()

    def rule(_: MachineClass, state: MachineState) -> int:
        asked.append(state.free)
        return state.free

    table = ConditionTable(view.conditions(Sight()), rule)
    ranked = RankedMachines(table, lambda free: (-float(free),) if free else None)
    assert [table.of_machine(machine) for machine in range(3)] == [0b1111] * 3
    cluster.allocate("a", [1])
    cluster.allocate("b", [4, 5, 6, 7])
    assert [table.of_machine(machine) for machine in range(3)] == [0b1101, 0, 0b1111]
    assert ranked.now().best(-1, -1)[0] == 2
    cluster.release("a")
    assert ranked.now().best(-1, -1)[0] == 0
    assert table.of_machine(0) == 0b1111
    assert asked == [0b1111, 0b1101, 0]


def test_a_machine_without_a_whole_partition_offers_nothing() -> None:
    box = replace(tp.Topology.from_links(4, [], 12.0), partitions=((0, 1), (2, 3)))
    cluster = tp.Cluster(tp.Topology.cluster(box, count=2, network=12.5))
    cluster.drain(0)
    view = cluster.view(ClusterView)
    request = view.request(tp.JobGraph.ring(2))

    def offered() -> list[tuple[int, int]]:
        found = offers_of(lambda *_: 2, request, view)
        return [(one.machine, one.max_tasks) for one in found if one.max_tasks]

    assert offered() == [(0, 2), (1, 2)]
    cluster.drain(3)
    assert offered() == [(1, 2)]
