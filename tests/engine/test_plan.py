"""Plans that are carried out, and explanations as dictionaries."""

from __future__ import annotations

import math

import pytest

import topoplace as tp
from topoplace.engine.driver import different_gpu_sets
from topoplace.engine.plan import Explanation, Plan, check_answer
from topoplace.errors import AllocationError, PolicyError
from topoplace.mig import MigSlice
from topoplace.placement import HostShare, Placement, Refusal

TOPOLOGY = tp.Topology.from_links(4, [(0, 1, 25.0)], 12.0, model="A100", memory_gb=40.0)
PAIR = tp.JobGraph.ring(2)


def placed(*gpus: int, **fields: object) -> Placement:
    return Placement(gpus, topology=TOPOLOGY, **fields)  # type: ignore[arg-type]


def test_jobs_leave_before_others_get_their_gpus_and_keep_their_graphs() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("moves", (0, 1), PAIR)
    cluster.allocate("unknown", (2,))
    cluster.allocate("stops", (3,))
    plan = Plan(
        start=(("starts", placed(0)),),
        move=(("moves", placed(3, 2)), ("unknown", placed(1))),
        preempt=("stops",),
    )
    plan.carry_out(cluster)
    assert cluster.allocations == {"moves": (3, 2), "unknown": (1,), "starts": (0,)}
    assert dict(cluster.jobs) == {"moves": PAIR}


def test_a_plan_for_another_state_changes_nothing() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("moves", (0,))
    before = cluster.snapshot()
    with pytest.raises(AllocationError):
        Plan(start=(("a", placed(0)), ("b", placed(0))), preempt=("moves",)).carry_out(cluster)
    assert cluster.snapshot() == before


def test_an_explanation_as_a_dictionary_has_what_each_candidate_states() -> None:
    host = HostShare(0, 4.0, 8.0)
    scores = {"bottleneck_bandwidth": math.inf, "utility": 0.5}
    rich = placed(2, scores=scores, hosts=(host,), drives=(0,), optimal=True)
    sliced = placed(
        1, slices=(MigSlice("1g.5gb", 2),), resliced=(1,), job=tp.JobGraph.ring(1).with_(mig="1g.5gb")
    )
    shown = Explanation("some", (rich, sliced)).to_dict(TOPOLOGY)
    assert (shown["topology"], shown["policy"], shown["complete"], shown["reason"]) == (
        *(TOPOLOGY.name, "some", True, None),
    )
    assert shown["assumed"] == [kind.name for kind in TOPOLOGY.assumed]
    first, second = shown["candidates"]
    assert shown["placement"] == first
    assert first == {
        "gpus": (2,),
        "time": None,
        "gb_per_s": None,
        "nvls": False,
        "slowest": None,
        "optimal": True,
        "bound": None,
        "scores": {"bottleneck_bandwidth": None, "utility": 0.5},
        "slices": [],
        "resliced": (),
        "hosts": [{"machine": 0, "cpus": 4.0, "memory_gb": 8.0}],
        "remote": (),
        "drives": (0,),
        "env": rich.env(),
    }
    assert (second["slices"], second["resliced"], second["env"]) == ([["1g.5gb", 2]], (1,), None)


def test_an_explanation_of_a_job_that_waits_shows_the_reason_and_no_placement() -> None:
    waits = Explanation("some", (placed(0),), Refusal("too slow"), complete=False)
    shown = waits.to_dict(TOPOLOGY)
    assert (shown["placement"], shown["reason"], shown["complete"]) == (None, "too slow", False)
    assert len(shown["candidates"]) == 1


def test_an_explanation_as_text_has_a_line_for_each_candidate() -> None:
    scores = {"bottleneck_bandwidth": math.inf, "utility": 2 / 3, "aggregated_bandwidth": 57600.0}
    assert str(Explanation("some", (placed(0, 1, scores=scores), placed(2)))).splitlines() == [
        "some:",
        "  GPUs 0, 1: bottleneck_bandwidth inf, utility 0.6667, aggregated_bandwidth 57,600",
        "  GPU 2",
    ]
    waits = Explanation("some", (placed(3),), Refusal("too slow"), complete=False)
    assert str(waits).splitlines() == [
        "some: too slow",
        "  GPU 3",
        "  (the search ended early: better candidates may be missing)",
    ]
    assert str(Explanation("some", (), Refusal("never"))) == "some: never"


def test_an_explanation_as_text_names_what_a_placement_needs_besides_gpus() -> None:
    job = tp.JobGraph.ring(1).with_(mig="1g.5gb")
    sliced = placed(1, slices=(MigSlice("1g.5gb", 2),), resliced=(1,), job=job)
    remote = placed(0, 2, hosts=(HostShare(0, 1.0, 0.0),), remote=(0, 2), optimal=True)
    hosted = tp.Placement((), topology=TOPOLOGY, hosts=(HostShare(0, 1.0, 0.0),), scores={"score": 1.0})
    assert str(Explanation("some", (sliced, remote, hosted))).splitlines() == [
        "some:",
        "  GPU 1 (slices 1g.5gb; GPU 1 resliced)",
        "  GPUs 0, 2 (GPUs 0, 2 over the network; proven best)",
        f"  no GPU, on {TOPOLOGY.machine_names[0]}: score 1",
    ]


def test_the_first_placement_of_each_gpu_set_counts_and_no_more_are_examined_than_twice_as_many() -> None:
    first, again, second, third = placed(0, 1), placed(1, 0), placed(2, 1), placed(3)
    examined = 0

    def several(*placements: Placement):
        nonlocal examined
        for examined, placement in enumerate(placements, 1):  # noqa: B007
            yield placement

    assert different_gpu_sets(several(first, again, second, third), 2) == ((first, second), None)
    assert examined == 3
    assert different_gpu_sets(several(first, again, again, again, second), 2) == ((first,), None)
    assert examined == 4


def test_an_answer_of_another_kind_is_named_with_policy_and_method() -> None:
    check_answer(None, Placement, "policy", "place", or_none=True)
    for kind, article in ((Placement, "a"), (Explanation, "an")):
        with pytest.raises(
            PolicyError, match=rf"policy 'str': place returned None, not {article} {kind.__name__}$"
        ):
            check_answer(None, kind, "policy", "place")
    with pytest.raises(PolicyError, match=r"place returned 7, not a Placement or None$"):
        check_answer(7, Placement, "policy", "place", or_none=True)
