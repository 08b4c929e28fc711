"""What the engine does with odd answers of a policy that somebody else wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import topoplace as tp
from topoplace.engine.admission import GpuSet
from topoplace.engine.gangs.offers import MachineOffer
from topoplace.engine.gangs.splits import MachineSplit, in_order
from topoplace.engine.machine_policy import Evaluation
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClass, Mask, members
from topoplace.engine.machines.machine_conditions import MachineState
from topoplace.engine.machines.machine_options import Option
from topoplace.engine.request import JobRequest
from topoplace.errors import PolicyError, SearchTimeoutError
from topoplace.policies import MachinePolicy, SearchPolicy

PAIR = tp.JobGraph.ring(2)
TOPOLOGY = tp.Topology.cluster(tp.machines.get("minsky"), count=3)


class Lowest(SearchPolicy):
    """Takes the lowest GPUs, and compares sets of them by the key for the lowest GPU on its machine."""

    name = "lowest"

    def __init__(self, *keys: Any) -> None:
        self.keys = keys or ((),)

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> tp.Placement | None:
        gpus = sorted([*required, *sorted(free - required)][: job.num_tasks])
        return tp.Placement(tuple(gpus), topology=cluster.topology, job=job)

    def order(self, job: tp.JobGraph, placement: tp.Placement) -> Any:
        return self.keys[min(placement.gpus) % 4 % len(self.keys)]


@dataclass
class Options(Lowest):
    """A policy that cannot be hashed, as a data class whose objects are equal if their fields are."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        self.keys = ((),)


class Late(Lowest):
    """Finds GPUs once; all other searches run out of time."""

    name = "late"
    has_searched = False

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> tp.Placement | None:
        if self.has_searched:
            raise SearchTimeoutError("late", None)
        self.has_searched = True
        return super().best(job, cluster, free, required)


class Fixed(MachinePolicy):
    """Offers the lowest GPUs with a fixed key and utility."""

    name = "fixed"

    def __init__(self, order: Any, utility: Any = 0.5) -> None:
        self.order, self.utility = order, utility

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterator[Option]:
        yield Option(self.order, tuple(members(free))[: request.size], self.utility, None)

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        return ()

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        return None

    def scores(self, details: Any) -> Mapping[str, float]:
        return {"utility": 0.5}


def running() -> tp.Cluster:
    """Return a cluster whose machines are in three conditions."""
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("one", [1])
    cluster.allocate("two", [4, 5])
    return cluster


@pytest.mark.parametrize(
    "keys",
    [
        ((2**53 + 1,), (2**53,), (2**53,), (2**53,)),  # not different as floats
        ((math.inf,), (-math.inf,)),
        ((1.0,), (1.0, 2.0), ()),
    ],
)
def test_explain_begins_with_the_choice_of_place_and_names_no_gpus_twice(keys: tuple[Any, ...]) -> None:
    policy, cluster = Lowest(*keys), running()
    explained = policy.explain(PAIR, cluster, top=20)
    placement = policy.place(PAIR, cluster)
    assert placement is not None
    assert explained.candidates[0].gpus == placement.gpus
    assert len({candidate.gpus for candidate in explained.candidates}) == len(explained.candidates) == 10


@pytest.mark.parametrize("order", [(math.nan,), (0.0, math.nan), ("a",), (10**400,), None])
@pytest.mark.parametrize("make", [Lowest, Fixed])
def test_a_key_that_cannot_be_compared_is_refused_by_name(order: Any, make: Any) -> None:
    with pytest.raises((ValueError, PolicyError), match=r"order (= |returned )"):
        make(order).place(PAIR, running())


@pytest.mark.parametrize("utility", [math.nan, None])
def test_a_utility_that_cannot_be_compared_is_refused_by_name(utility: Any) -> None:
    with pytest.raises(ValueError, match="utility = "):
        Fixed((), utility).place(PAIR, running())


def test_a_policy_need_not_be_hashable() -> None:
    placement = Options(weight=2.0).place(PAIR, running())
    assert placement is not None
    assert placement.gpus == (0, 2)


def test_an_explanation_is_not_complete_if_a_search_for_other_gpus_ran_out_of_time() -> None:
    explained = Late().explain(PAIR.with_(single_machine=True), tp.Cluster(TOPOLOGY))
    assert [placement.gpus for placement in explained.candidates] == [(0, 1), (4, 5), (8, 9)]
    assert not explained.complete


class Watching(Fixed):
    """Notes what it sees of each condition of machines that it is asked about."""

    def __init__(self) -> None:
        super().__init__((0.0,))
        self.seen: list[MachineState] = []

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterator[Option]:
        self.seen.append(state)
        return super().options(request, machine_class, state, free)


class Blind(Watching):
    sees_jobs = False


def test_a_rule_sees_the_jobs_on_machines_unless_its_class_says_otherwise() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("known", [0, 1], PAIR.with_(profile="a"))
    cluster.allocate("unknown", [4, 5])
    watching, blind = Watching(), Blind()
    for policy in (watching, blind, blind, watching):
        assert policy.place(PAIR, cluster) is not None
    assert [[one.profile for one in state.neighbours] for state in watching.seen] == [["a"], [""], []]
    assert [state.neighbours for state in blind.seen] == [(), ()]  # two conditions


def test_younger_jobs_overtake_one_that_waits_unless_the_policy_says_otherwise() -> None:
    class InOrder(Fixed):
        out_of_order = False

    queue = [
        tp.policies.QueuedJob(name, tp.JobGraph.ring(size))
        for name, size in zip("abc", (4, 4, 2), strict=True)
    ]
    assert [name for name, _ in Fixed((0.0,)).plan(queue, running(), 0.0).start] == ["a", "c"]
    assert [name for name, _ in InOrder((0.0,)).plan(queue, running(), 0.0).start] == ["a"]


def test_a_policy_that_may_reslice_is_the_same_for_good_and_says_so() -> None:
    plain = Fixed((0.0,))
    other = plain.with_reslicing()
    assert (plain.may_reslice, other.may_reslice) == (False, True)
    assert other.with_reslicing() is other
    assert (repr(plain), repr(other)) == ("Fixed()", "Fixed().with_reslicing()")


def test_a_policy_may_be_mixed_with_a_class_that_takes_arguments() -> None:
    class Labelled:
        label = ""

        def __init_subclass__(cls, label: str = "", **arguments: Any) -> None:
            super().__init_subclass__(**arguments)
            cls.label = label

    class Mixed(Lowest, Labelled, label="x"):
        pass

    assert Mixed.label == "x"


class Gangs(Fixed):
    """Splits jobs over machines, at a utility of 0.25, and notes which GPUs it rates."""

    honours = frozenset(("min_utility",))

    def __init__(self) -> None:
        super().__init__((0.0,))
        self.rated: list[tuple[int, ...]] = []

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        return in_order(offers, request.size, anti_affine=False)

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation:
        self.rated.append(tuple(gpus))
        return Evaluation(0.25, None)

    def least_utility(self, job: tp.JobGraph, postponed: int = 0) -> float:
        return job.min_utility


def test_the_utility_of_a_gang_that_waits_is_not_looked_for_twice() -> None:
    policy, cluster = Gangs(), tp.Cluster(TOPOLOGY)
    ring = tp.JobGraph.ring(6).with_(min_utility=0.5)
    plan = policy.plan([tp.policies.QueuedJob("a", ring)], cluster, 0.0)
    assert plan.defer == (("a", tp.Refusal("postponed: its utility would be 0.250 now, 0.5 is asked for")),)
    once = list(policy.rated)
    assert policy.place(ring, cluster) is None
    assert policy.rated == 2 * once
    assert policy.place(ring.with_(min_utility=0.25), cluster) is not None
    assert policy.rated == [*once, *once, once[0]]


def test_the_reason_to_wait_names_the_best_utility_of_all_candidates() -> None:
    class Several(Fixed):
        honours = frozenset(("min_utility",))

        def options(
            self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
        ) -> Iterator[Option]:
            yield from (Option((float(i),), (i, i + 1), 0.25 * i, 0.25 * i) for i in (0, 2, 1))

        def scores(self, details: Any) -> Mapping[str, float]:
            return {"utility": details}

        def least_utility(self, job: tp.JobGraph, postponed: int = 0) -> float:
            return job.min_utility

    policy, cluster = Several((0.0,)), tp.Cluster(tp.machines.get("minsky"))
    explained = policy.explain(PAIR.with_(min_utility=0.9), cluster)
    assert [one.scores["utility"] for one in explained.candidates] == [0.0, 0.25, 0.5]
    assert explained.refusal == tp.Refusal("postponed: its utility would be 0.500 now, 0.9 is asked for")
    assert policy.place(PAIR.with_(min_utility=0.25), cluster) == policy.explain(PAIR, cluster).candidates[1]
    assert [*policy.ranked_machines(PAIR.with_(min_utility=0.5), cluster)] == [[0]]
    assert not [*policy.ranked_machines(PAIR.with_(min_utility=0.6), cluster)]
