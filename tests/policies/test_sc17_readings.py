"""Other readings of SC'17: utility inside the bipartition, eq. 2 as printed, eq. 5 to the letter, weights by batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import share, thorough
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives import Costs, PrintedUtility, Utility
from topoplace.policies import TopoAware, TopoAwareP
from topoplace.testing import check_policy
from topoplace.testing.default_cases import default_topologies

MINSKY = tp.machines.get("minsky")
PAIR = tp.JobGraph.clique(2)
PROFILE = PerformanceProfile(
    {("net/1", 1, "intra-socket"): 100.0, ("net/1", 2, "intra-socket"): 100.0},
    {("net/1", 1, "net/1", 1): 150.0, ("net/1", 2, "net/1", 1): 150.0},
)


def letter(**options: object) -> TopoAware:
    return TopoAware(utility_in_bipartition=True, **options)  # type: ignore[arg-type]


def test_the_contract_holds() -> None:
    topologies = share(default_topologies(), 0, of=3)
    assert check_policy(letter, topologies=topologies, states=thorough(6, 1)).placed > 30
    printed = TopoAwareP(utility_in_bipartition=True, utility="printed")
    assert check_policy(lambda: printed, topologies=topologies, states=thorough(6, 1)).placed > 0


def test_a_pair_is_split_where_its_first_task_prefers_a_used_socket() -> None:
    cluster = tp.Cluster(MINSKY)
    cluster.allocate("other", [0])
    whole, task_by_task = TopoAware().place(PAIR, cluster), letter().place(PAIR, cluster)
    assert whole is not None
    assert task_by_task is not None
    assert sorted(whole.gpus) == [2, 3]
    # Halves {0 or 2, ...}: the first task alone has no communication, and GPU 1 leaves less fragmentation.
    assert 1 in task_by_task.gpus


def test_a_task_avoids_the_half_of_a_job_that_slows_it() -> None:
    cluster = tp.Cluster(MINSKY)
    one = tp.JobGraph.independent(1).with_(profile="net/1")
    cluster.allocate("other", [0], job=one)
    cluster.allocate("unknown", [2])
    placed = letter(profile=PROFILE).place(one, cluster)
    assert placed is not None
    assert placed.gpus == (3,)
    assert TopoAware(profile=PROFILE, utility_in_bipartition=False).place(one, cluster) == placed


@given(
    machine=st.sampled_from(["minsky", "dgx1-v100", "summit", "dgx-a100"]),
    busy=st.sets(st.integers(0, 15)),
    size=st.integers(1, 6),
    shape=st.sampled_from([tp.JobGraph.ring, tp.JobGraph.clique, tp.JobGraph.chain]),
)
def test_every_task_gets_its_own_free_gpu(machine: str, busy: set[int], size: int, shape: object) -> None:
    topology = tp.machines.get(machine)
    cluster = tp.Cluster(topology)
    if taken := [gpu for gpu in busy if gpu < topology.num_gpus]:
        cluster.allocate("other", taken)
    placed = letter().place(shape(size), cluster)  # type: ignore[operator]
    assert (placed is not None) == (cluster.num_free >= size)
    if placed is not None:
        assert len(set(placed.gpus)) == size
        assert not set(placed.gpus) & set(taken)


def test_eq_2_as_printed_by_hand() -> None:
    formula = PrintedUtility()
    ideal = Costs(2, 1.0, 1.0, 20.0, 1.0, 1.0, 0.5, 0.0)
    spread = Costs(2, 20.0, 1.0, 20.0, 0.8, 0.9, 0.5, 0.5, unused=0.25)
    assert formula.job(ideal) == pytest.approx((1 + 0.01) / 2)
    assert formula.job(spread) == pytest.approx((0.01 + 0.01 / 0.8) / 2)
    assert formula.system(ideal) == pytest.approx((1 + 0.01 + 1) / 3)
    assert formula.system(spread) == pytest.approx((0.01 + 0.01 / 0.9 + 0.01 / 0.25) / 3)
    assert formula.job(spread._replace(suffered=0.5)) > formula.job(spread)  # it rewards interference
    assert isinstance(TopoAware(utility="printed").utility, PrintedUtility)


def test_eq_5_to_the_letter_counts_idle_sockets() -> None:
    costs = Costs(1, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.25, unused=0.75)
    assert Utility(0.5, 0.0, 0.5).system(costs) == pytest.approx(1 - 0.5 * 0.25)
    assert Utility(0.5, 0.0, 0.5, literal_fragmentation=True).system(costs) == pytest.approx(1 - 0.5 * 0.75)
    cluster = tp.Cluster(tp.Topology.cluster(MINSKY, count=2))
    cluster.allocate("other", [0, 1])
    placed = TopoAware().place(PAIR, cluster)
    assert placed is not None
    assert placed.scores["fragmentation"] == 0.0


def test_weights_of_edges_count_relative_to_the_heaviest_job() -> None:
    light = PAIR.with_(min_utility=0.6)
    heavy = tp.JobGraph.from_edges(2, [(0, 1, 4.0)]).with_(min_utility=0.6)
    cluster = tp.Cluster(MINSKY)
    cluster.allocate("a", [0])
    cluster.allocate("b", [2])
    cancelled, relative = TopoAwareP(), TopoAwareP(utility=Utility(heaviest=4.0))
    assert (
        cancelled.place(light, cluster)
        is cancelled.place(heavy, cluster)
        is relative.place(heavy, cluster)
        is None
    )
    placed = relative.place(light, cluster)
    assert placed is not None
    assert placed.scores["utility"] == pytest.approx(1 - 0.5 * 1 / 4)
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="heaviest"):
            Utility(heaviest=wrong)
    with pytest.raises(ValueError, match="literal_fragmentation = 1"):
        Utility(literal_fragmentation=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="utility_in_bipartition = 'yes'"):
        TopoAware(utility_in_bipartition="yes")  # type: ignore[arg-type]
