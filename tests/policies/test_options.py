"""The least and the largest value of each option, and what it is by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import topoplace as tp
from topoplace.policies import LeastTime, NodeQueue
from topoplace.policies.drmaestro.costs import Costs
from topoplace_lab.policies.drmaestro import DRMaestroService, InferenceEngine
from topoplace_lab.sharing.sharing_policy import SharingPolicy

LIMITS: list[tuple[Callable[..., Any], str, float, float]] = [
    (tp.policies.Greedy, "max_nodes", 1, (2**63 - 1) // 8),
    (tp.policies.RandomFit, "seed", 0, 2**63 - 1),
    (tp.policies.TopoAwareP, "max_postponements", 0, 2**30),
    (tp.policies.DRMaestro, "max_postponements", 0, 2**30),
    (tp.policies.DRMaestro, "window", 1, 2**30),
    (InferenceEngine, "min_runs", 1, 2**30),
    (Costs, "goal", 1.0, 1e300),
    (Costs, "importance", 1.0, 10.0),
    (Costs, "impatience", 0.0, 1e6),
]


@pytest.mark.parametrize(("made", "option", "least", "most"), LIMITS)
def test_values_between_the_limits_are_accepted(
    made: Callable[..., Any], option: str, least: float, most: float
) -> None:
    for value in (least, most):
        assert getattr(made(**{option: value}), option) == value
    past = (least - 1, most + 1) if isinstance(least, int) else (least - 1e-6, most * 1.000001)
    for value in past if most < 1e300 else past[:1]:
        with pytest.raises(ValueError, match=option):
            made(**{option: value})


@pytest.mark.parametrize(
    ("made", "option", "value"),
    [
        (Costs, "waiting", "days"),
        (Costs, "load", "mean"),
        (tp.policies.TopoAware, "profile", 3),
        (tp.policies.TopoAware, "memory_bandwidth", 0.0),
        (tp.policies.TopoAware, "utility", 0.5),
        (tp.policies.Preserve, "force_eq2", 1),
        (tp.policies.Greedy, "timeout", "1"),
        (tp.policies.DotProduct, "rounded", 0),
        (tp.policies.DRMaestro, "network_aware", 1),
        (tp.policies.DRMaestro, "retry", 1),
        (DRMaestroService, "engine", "mine"),
    ],
)
def test_values_of_another_kind_are_refused_by_name(
    made: Callable[..., Any], option: str, value: object
) -> None:
    with pytest.raises(ValueError, match=f"^{option} = "):
        made(**{option: value})


@pytest.mark.parametrize(
    "policy", [tp.policies.get(name) for name in ("fcfs", "drmaestro", "g-queue")], ids=repr
)
def test_at_least_one_candidate_is_explained(policy: tp.Policy) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=4), tp.HostResources(16, 64.0))
    job = tp.JobGraph.ring(2).with_(cpus=2)
    for top, count in ((1, 1), (2, 2), (3, 3), (2**30, 8 if policy.name == "fcfs" else 4)):
        found = policy.explain(job, cluster, top=top).candidates
        assert len({frozenset(one.gpus) for one in found}) == len(found) >= min(count, 4)
        assert len(found) <= top
    for top in (0, 2**30 + 1):
        with pytest.raises(ValueError, match=f"top = {top}"):
            policy.explain(job, cluster, top=top)


def test_defaults() -> None:
    """What `docs/policies.md` and the docstrings say of policies without options."""
    assert Costs() == Costs(goal=1.05, importance=1.0, impatience=1.0, waiting="seconds", load="capacity")
    policy = tp.policies.DRMaestro()
    assert (policy.disaggregate, policy.network_aware, policy.gpu_topology, policy.retry) == (
        True,
        False,
        False,
        True,
    )
    assert (policy.max_postponements, policy.window) == (10, 512)
    assert repr(policy) == "DRMaestro(disaggregate=True, network_aware=False)"
    service = DRMaestroService()
    assert (service.network_aware, service.retry, service.engine.min_runs) == (True, False, 4)
    for mapa in (tp.policies.Greedy(), tp.policies.Preserve()):
        assert mapa.max_nodes == 2_000_000
    preserve = tp.policies.Preserve()
    assert (preserve.force_eq2, preserve.min_effective_bandwidth) == (False, None)
    assert LeastTime().rates == tp.collective.DEFAULT_RATES == "nccl-2.30"
    assert tp.policies.RandomFit().seed == 0
    assert [tp.policies.get(name).typical.weights for name in ("fgd", "least-stranded")] == [
        {
            tp.JobGraph.independent(1).with_(gpu_fraction=0.5): 1 / 9,
            **{tp.JobGraph.independent(size): w / 9 for size, w in ((1, 4), (2, 2), (4, 1), (8, 1))},
        }
    ] * 2
    vector = tp.policies.VectorBestFit()
    assert (vector.rounded, vector.out_of_order) == (True, True)
    assert isinstance(tp.policies.get("g-queue"), NodeQueue)
    assert repr(tp.policies.get("g-queue")) == "GQueue()"


def test_every_class_is_found_by_its_name_and_the_names_of_sharing_policies_are_right() -> None:
    assert {"MachinePolicy", "Greedy", "get"} <= set(dir(tp.policies))
    for name in tp.policies.__all__:
        assert getattr(tp.policies, name) is not None
    shares = {name for name in tp.policies.names() if isinstance(tp.policies.get(name), SharingPolicy)}
    assert set(tp.policies.names(sharing=True)) == shares
    assert set(tp.policies.names(sharing=False)) == set(tp.policies.names()) - shares
    with pytest.raises(AttributeError, match=r"'topoplace\.policies' has no attribute 'Greedier'"):
        _ = tp.policies.Greedier
