"""The best sets of GPUs in each condition of machines, beside the same rule asked machine by machine."""

from __future__ import annotations

import signal
from dataclasses import replace
from itertools import combinations, islice
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.deciding import ranked_sets
from topoplace.deciding.least_time import LeastTime
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.machines.machine_options import MachineOptions, Option
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import deadline

MACHINES = ("dgx1-v100", "minsky", "mi250x", "l40s-8", "dgx-h100")
JOBS = (
    tp.JobGraph.ring(3),
    tp.JobGraph.ring(2).with_(gpu_memory_gb=20.0),
    tp.JobGraph.chain(4),
    tp.JobGraph.independent(2),
    tp.JobGraph.clique(3).grouped(3, within="socket"),
    tp.JobGraph.from_edges(4, [(0, 1, 3.0), (1, 2, 1.0), (0, 3, 2.0)]),
    tp.JobGraph.parallel(tensor=2, data=2),
    tp.JobGraph.ring(2).with_(gpu_fraction=0.5),
    tp.JobGraph.independent(2).with_(gpu_fraction=0.3, spread="gpu"),
)


@st.composite
def clusters(draw: st.DrawFn) -> tp.Cluster:
    """Generate up to three machines, also in fixed partitions, with busy GPUs."""
    machines = [
        tp.machines.get(name) for name in draw(st.lists(st.sampled_from(MACHINES), min_size=1, max_size=3))
    ]
    if draw(st.booleans()):
        halves = [tuple(range(4)), tuple(range(4, 8)), tuple(range(8))]
        machines.append(replace(tp.machines.get("dgx1-v100"), partitions=halves))
    cluster = tp.Cluster(tp.Topology.cluster(machines))
    for gpu in draw(st.sets(st.integers(0, cluster.topology.num_gpus - 1))):
        cluster.drain(gpu)
    for number, share in enumerate(draw(st.lists(st.sampled_from([0.2, 0.5, 0.7]), max_size=4))):
        job = tp.JobGraph.independent(1).with_(gpu_fraction=share)
        if cluster.topology.partitions or (placement := tp.place(job, cluster)) is None:
            break
        cluster.allocate(f"share-{number}", placement, job)
    return cluster


@given(clusters(), st.sampled_from(JOBS), st.booleans())
def test_the_kernels_rank_what_the_rule_ranks(
    cluster: tp.Cluster, job: tp.JobGraph, is_thorough: bool
) -> None:
    policy, view = LeastTime(), cluster.view(ClusterView)
    if is_thorough:
        policy._timing = policy._timing._replace(alternatives=ranked_sets.MOST_OPTIONS)
    request, conditions = view.request(job), view.conditions(Sight(shares=job.takes_parts))
    if len(request.memory_limits) > 1:
        return
    by_rule = MachinePolicy._table(policy, request, view, conditions)
    native = policy._table(request, view, conditions)
    assert isinstance(native, ranked_sets.SetTable)
    best = [MachineOptions(conditions, (-1, -1), table, lambda *_: {}).best() for table in (native, by_rule)]
    assert best[0] == best[1]
    for condition in conditions.native.present():
        assert native.options(condition) == list(by_rule.options(condition))
        if by_rule.options(condition):
            assert native.first(condition) == by_rule.options(condition)[0]


def test_what_is_found_before_a_deadline_is_kept() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=40))
    for machine in range(40):
        for gpu in range(8):
            if machine >> gpu & 1:
                cluster.drain(8 * machine + gpu)
    policy, view = LeastTime(), cluster.view(ClusterView)
    options = policy._machine_options(view.request(tp.JobGraph.chain(4)), view)
    with pytest.raises(DeadlineError), deadline(1e-9):
        options.best()
    assert options.known_best() is None
    found = options.best()
    assert found is not None
    assert options.best_so_far() == found


def test_the_options_of_a_subclass_count() -> None:
    class LastGpus(LeastTime):
        def options(self, request: Any, machine_class: Any, state: Any, free: Any) -> list[Option]:
            return [
                option._replace(gpus=(6, 7))
                for option in super().options(request, machine_class, state, free)
            ]

    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    placement = LastGpus().place(tp.JobGraph.ring(2), cluster)
    assert placement is not None
    assert placement.gpus == (6, 7)


def test_an_interrupt_ends_the_ranking_of_many_conditions() -> None:
    """A handler that is due when the ranking begins runs before all of it is done; what was ranked is kept."""
    machine = tp.machines.get("cubemesh-16")
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=1000))
    for number, busy in enumerate(islice(combinations(range(16), 4), 1000)):
        cluster.allocate(f"busy-{number}", [16 * number + gpu for gpu in busy])
    view = cluster.view(ClusterView)
    options = LeastTime()._machine_options(view.request(tp.JobGraph.ring(6)), view)

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with pytest.raises(KeyboardInterrupt):
            options.best()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert options.known_best() is None
    assert options.best() is not None
