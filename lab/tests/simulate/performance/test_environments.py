"""Jobs in containers and virtual machines."""

from __future__ import annotations

from typing import Any

import pytest

import topoplace as tp
from topoplace.jobs.network_profile import NetworkProfile
from topoplace_lab.papers.drmaestro import virtual_environments as tables
from topoplace_lab.simulate import (
    ENVIRONMENTS,
    Environment,
    ExecutionEnvironment,
    MapaSlowdown,
    NetworkContention,
    RemoteCopies,
    Workload,
    simulate,
)

PROFILES = {"net": NetworkProfile(0.5, 0.75, 0.25)}


def run_time(model: ExecutionEnvironment, profile: str | None = "net") -> float:
    """The run time of a job of 100 s, alone on one GPU of a machine."""
    job = tp.JobGraph.independent(1).with_(profile=profile)
    workload = Workload([job], [0.0], [100.0])
    record = simulate(tp.machines.get("minsky"), workload, tp.policies.Baseline(), performance=model).records[
        0
    ]
    return record.end - record.start


def test_computing_and_network_become_longer_each_by_its_factor() -> None:
    costs = Environment(computing=1.1, network=3.0, start=2.0)
    model = ExecutionEnvironment(costs, profiles=PROFILES, start_seconds=5.0)
    assert run_time(model) == pytest.approx(75 * 1.1 + 25 * 3 + 10)
    assert run_time(model, None) == pytest.approx(100 * 1.1 + 10)
    assert run_time(ExecutionEnvironment("bare-metal", profiles=PROFILES, start_seconds=5.0)) == 100.0


def test_a_job_with_remote_gpus_has_the_larger_share_in_the_network() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), count=2)
    cluster = tp.Cluster(topology, [tp.HostResources(0, 0.0), tp.HostResources(8, 64.0)])
    cluster.allocate("other", (4, 5, 6, 7))
    job = tp.JobGraph.independent(1).with_(cpus=1, profile="net")
    placement = tp.policies.DRMaestro().place(job, cluster)
    assert placement is not None
    assert placement.remote
    entry = tp.simulate.SubmittedJob(0, "a", job, 0.0, 100.0)
    model = ExecutionEnvironment(Environment(network=2.0), profiles=PROFILES)
    assert model.run_time(entry, placement, None) == pytest.approx(150.0)  # type: ignore[arg-type]


def test_neighbours_count_as_without_the_environment() -> None:
    topology, job = tp.machines.get("minsky"), tp.JobGraph.independent(1).with_(profile="net")
    workload = Workload([job, job], [0.0, 0.0], [100.0, 100.0])
    base = NetworkContention(PROFILES)
    ends = [
        simulate(topology, workload, tp.policies.Baseline(), performance=model).summary()["makespan"]
        for model in (base, ExecutionEnvironment("bare-metal", base), ExecutionEnvironment("bare-metal"))
    ]
    assert ends[0] == ends[1] > ends[2] == 100.0


def test_the_environments_are_those_of_the_tables() -> None:
    cells = {
        "container": tables.CONTAINER["host"],
        "container-bridge": tables.CONTAINER["bridge"],
        "container-vswitch": tables.CONTAINER["vswitch"],
        "nested": tables.NESTED["host", "host"],
        "nested-bridge": tables.NESTED["bridge", "bridge"],
        "nested-vswitch": tables.NESTED["vswitch", "bridge"],
        "vm-bridge": tables.VM["bridge"],
        "vm-vswitch": tables.VM["vswitch"],
    }
    assert set(ENVIRONMENTS) == {"bare-metal", *cells}
    for name, (gbit, _) in cells.items():
        assert ENVIRONMENTS[name].network == tables.HOST[0] / gbit
    slowest = [ENVIRONMENTS[name] for name in ("bare-metal", "container", "nested", "vm-bridge")]
    assert sorted(slowest, key=lambda one: one.start) == slowest


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("jail",), {}, "environment = 'jail'"),
        ((3,), {}, "environment"),
        (("container", 3), {}, "base"),
        (("container", RemoteCopies()), {}, "LinkModel"),
        (("container",), {"profiles": []}, "profiles"),
        (("container",), {"profiles": {"net": 1}}, r"profiles\['net'\]"),
        (("container",), {"start_seconds": -1.0}, "start_seconds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ExecutionEnvironment(*arguments, **options)


@pytest.mark.parametrize("costs", [{"computing": 0.9}, {"network": float("nan")}, {"start": -1.0}], ids=str)
def test_costs_below_those_of_bare_metal_are_refused(costs: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(costs))):
        Environment(**costs)


def test_any_model_may_be_inside() -> None:
    assert run_time(ExecutionEnvironment("vm-bridge", MapaSlowdown())) == pytest.approx(102.0)
