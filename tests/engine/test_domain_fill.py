"""The machine in the fullest domains, against a comparison of all machines."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import _core
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_conditions import Conditions, Sight

SIZE = 2


@st.composite
def levels(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw the pod and the leaf of each machine."""
    leaf_of = draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    pod_of_leaf = draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    return [pod_of_leaf[leaf] for leaf in leaf_of], leaf_of


def flip(cluster: tp.Cluster, gpus: set[int], number: int) -> None:
    """Take these GPUs if they are free, and else give them back."""
    for gpu in sorted(gpus):
        owner = cluster.owner(gpu)
        if owner is None:
            cluster.allocate(f"{number} {gpu}", [gpu])
        else:
            cluster.release(owner)


def in_the_fullest(free: Sequence[int], pod_of: Sequence[int], leaf_of: Sequence[int], tasks: int) -> int:
    """Return the first machine with room by the definition; -1 if there is none."""

    def fill(domain_of: Sequence[int], machine: int) -> tuple[int, int]:
        inside = [m for m, domain in enumerate(domain_of) if domain == domain_of[machine]]
        return sum(free[m] for m in inside), inside[0]

    fits = [machine for machine, count in enumerate(free) if count >= tasks]
    return min(fits, key=lambda m: (*fill(pod_of, m), *fill(leaf_of, m), free[m], m), default=-1)


def ranked(conditions: Conditions, tasks: int) -> _core.MachineRanking:
    """Rank machines with room by their free GPUs, after a key that is equal for all."""
    ranking = _core.MachineRanking(conditions.native)
    for condition in ranking.unknown():
        room = conditions.of(condition)[1].free.bit_count()
        ranking.set(condition, (0.0, float(room)) if room >= tasks else None)
    return ranking


@given(levels(), st.data())
def test_it_is_the_machine_of_all_in_the_fullest_domains(
    domains: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    pod_of, leaf_of = domains
    cluster = tp.Cluster(tp.Topology.cluster(tp.Topology.from_links(SIZE, [(0, 1, 10.0)]), len(leaf_of)))
    conditions = cluster.view(ClusterView).conditions(Sight(jobs=False))
    fill = _core.DomainFill(conditions.native, [pod_of, leaf_of])
    for number in range(data.draw(st.integers(1, 4))):
        flip(cluster, data.draw(st.sets(st.sampled_from(range(cluster.topology.num_gpus)))), number)
        free = [sum(cluster.owner(SIZE * m + g) is None for g in range(SIZE)) for m in range(len(leaf_of))]
        tasks = data.draw(st.integers(1, SIZE))
        found, _ = ranked(conditions, tasks).best_by_domain(fill, 1)
        assert found == in_the_fullest(free, pod_of, leaf_of, tasks)
        for level, domain_of in enumerate((pod_of, leaf_of)):
            of_domain = [
                sum(count for count, domain in zip(free, domain_of, strict=True) if domain == one)
                for one in sorted(set(domain_of))
            ]
            assert fill.free_of_level(level) == of_domain
