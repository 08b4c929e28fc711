"""What a request says of the jobs that share it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.request import JobRequest, exact_request_key, request_key, resource_key

PAIR = tp.JobGraph.ring(2)


def request(job: tp.JobGraph, topology: tp.Topology | None = None) -> JobRequest:
    return tp.Cluster(topology or tp.machines.get("minsky")).view(ClusterView).request(job)


def test_weights_of_edges() -> None:
    uneven = request(tp.JobGraph.from_edges(3, [(0, 1, 4.0), (1, 2, 1.0)]))
    assert (uneven.weight, uneven.mean_weight) == (5.0, 2.5)
    none = request(tp.JobGraph.independent(2))
    assert (none.weight, none.mean_weight) == (0.0, 0.0)


def test_a_slice_needs_the_memory_that_it_has_on_the_gpu_where_that_is_most() -> None:
    """1g.10gb takes a quarter of an A100 of 40 GB, and an eighth of one of 80 GB."""
    plain = tp.Topology.from_links(2, [], 12.0, model="A100")

    def of(*memory_gb: float) -> tp.Topology:
        gpus = zip(plain.gpus, memory_gb, strict=True)
        return replace(plain, gpus=tuple([replace(gpu, memory_gb=amount) for gpu, amount in gpus]))

    assert request(PAIR.with_(mig="1g.10gb"), of(40.0, 80.0)).share == 250
    assert request(PAIR.with_(mig="1g.10gb"), of(80.0, 80.0)).share == 125
    assert request(PAIR.with_(mig="1g.10gb")).share == 1  # no GPU has such slices
    assert request(PAIR.with_(gpu_fraction=0.3)).share == 300
    assert request(PAIR).share == 1000


@pytest.mark.parametrize(
    "wish",
    [
        *({"cpus": 2}, {"memory_gb": 1.0}, {"drives": 1}, {"processes": 2}, {"gpu_model": "A"}),
        *({"gpu_memory_gb": 1.0}, {"single_machine": True}, {"anti_affinity": True}, {"gpu_fraction": 0.5}),
        *({"mig": "1g.5gb"}, {"within": "r"}, {"prefer": "r"}, {"spread": "r"}, {"max_machines": 1}),
        {"same_gpus": True},
    ],
)
def test_jobs_that_need_something_else_are_not_interchangeable(wish: dict[str, object]) -> None:
    other = PAIR.with_(**wish)
    assert resource_key(PAIR) != resource_key(other)
    assert request_key(PAIR) != request_key(other)


def test_what_only_some_policies_look_at_is_in_the_exact_key_alone() -> None:
    asking = PAIR.with_(min_utility=0.3)
    for first, wish in (
        (asking, {"min_utility": 0.5}),
        (PAIR, {"name": "a"}),
    ):
        other = first.with_(**wish)
        assert request_key(first) == request_key(other)
        assert exact_request_key(first) != exact_request_key(other)
    for other in (
        PAIR.with_(profile="a"),
        PAIR.with_(memory_bandwidth=1.0),
        PAIR.with_(bandwidth_sensitive=True),
        PAIR.with_(tflop=2.0),
        tp.JobGraph.independent(2),
        asking,
    ):
        assert resource_key(PAIR) == resource_key(other)
        assert request_key(PAIR) != request_key(other)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({}, (False, False, False, (-1, -1))),
        ({"cpus": 3, "memory_gb": 1.5}, (False, False, True, (3000, 1500))),
        ({"gpu_fraction": 0.5}, (True, False, False, (-1, -1))),
        ({"mig": "1g.5gb"}, (True, False, False, (-1, -1))),
        *(({limit: True}, (False, True, False, (-1, -1))) for limit in ("same_gpus",)),
        *(({limit: "r"}, (False, True, False, (-1, -1))) for limit in ("within", "spread")),
        ({"max_machines": 1}, (False, True, False, (-1, -1))),
        ({"prefer": "r"}, (False, False, False, (-1, -1))),
    ],
)
def test_what_a_request_says(wish: dict[str, object], expected: tuple[object, ...]) -> None:
    found = request(PAIR.with_(**wish))
    assert (found.takes_parts, found.limits_machines, found.needs_hosts, found.whole_job) == expected
    assert (found.size, found.profile, found.anti_affine) == (2, "", False)


def test_one_task_alone_has_no_other_to_stay_away_from() -> None:
    assert request(PAIR.with_(anti_affinity=True)).anti_affine
    assert not request(tp.JobGraph.ring(1).with_(anti_affinity=True)).anti_affine
    assert not request(PAIR.with_(anti_affinity=True)).classes_that_fit
    assert len(request(PAIR).classes_that_fit) == 1
    assert not request(tp.JobGraph.ring(5)).classes_that_fit
