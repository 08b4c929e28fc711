"""DRMaestro as a service: what it infers from telemetry, and how that changes its decisions."""

from __future__ import annotations

import pytest

import topoplace as tp
from thoroughness import share, thorough
from topoplace.policies import DRMaestro, QueuedJob
from topoplace.testing import check_policy
from topoplace.testing.default_cases import default_topologies
from topoplace_lab.papers.drmaestro import rodinia
from topoplace_lab.policies.drmaestro import DRMaestroService, InferenceEngine
from topoplace_lab.simulate import NetworkContention, Result, TelemetryLog, simulate
from topoplace_lab.telemetry import FinishedRun, Reading

TRUE = tp.NetworkProfile(0.2, 0.5, 0.1)
"""The application "a" takes 100 s on an idle network."""


def watch(engine: InferenceEngine, job: str, load: float, seconds: float, *, remote: bool = True) -> None:
    """Let an engine watch a run of "a" next to a job that loads the network of machine 0."""
    sent = {0: 0.2, 1: 0.2} if remote else {0: 0.1}
    engine.measured(Reading(0.0, {job: sent, "other": {0: load}}))
    engine.finished(FinishedRun(job, "a", 1, int(remote), 0.0, seconds))


def run_time(load: float, *, remote: bool = True) -> float:
    return 100 * TRUE.slowdown(load, remote=remote)


def test_a_profile_follows_from_completion_times_in_different_states() -> None:
    engine = InferenceEngine(min_runs=2)
    watch(engine, "1", 0.0, run_time(0.0))
    assert engine.profile("a") is None
    watch(engine, "2", 0.75, run_time(0.75))
    found = engine.profile("a")
    assert found is not None
    assert (found.alone, found.contended) == pytest.approx((TRUE.alone, TRUE.contended))


def test_runs_with_local_gpus_tell_how_much_weaker_these_depend_on_the_network() -> None:
    engine = InferenceEngine(min_runs=3)
    watch(engine, "1", 0.0, run_time(0.0))
    watch(engine, "2", 0.5, run_time(0.5))
    watch(engine, "3", 0.9, run_time(0.9, remote=False), remote=False)
    found = engine.profile("a")
    assert found is not None
    assert (found.alone, found.contended, found.local) == pytest.approx((0.2, 0.5, 0.1))


def test_an_average_is_of_one_state() -> None:
    engine = InferenceEngine()
    for job, load, seconds in (("1", 0.31, 100.0), ("2", 0.39, 120.0), ("3", 0.41, 200.0)):
        watch(engine, job, load, seconds)
    assert engine.average("a", 0.35, remote=True) == 110.0
    assert engine.average("a", 0.45, remote=True) == 200.0
    assert engine.average("a", 0.35, remote=False) is None
    assert engine.average("b", 0.35, remote=True) is None


def test_runs_that_tell_nothing_are_left_out() -> None:
    engine = InferenceEngine(min_runs=1)
    engine.finished(FinishedRun("unseen", "a", 1, 1, 0.0, 50.0))
    engine.measured(Reading(0.0, {"mixed": {0: 0.1}, "nameless": {0: 0.1}}))
    engine.finished(FinishedRun("mixed", "a", 2, 1, 0.0, 50.0))
    engine.finished(FinishedRun("nameless", None, 1, 1, 0.0, 50.0))
    assert engine.average("a", 0.0, remote=True) is None
    assert engine.profile("a") is None
    assert engine.profile(None) is None


def test_runs_at_one_load_do_not_replace_a_model() -> None:
    engine = InferenceEngine({"a": TRUE}, min_runs=2)
    for job in "123456":
        watch(engine, job, 0.02, 500.0)
    assert engine.profile("a") is TRUE


def test_a_network_that_seems_to_help_costs_nothing() -> None:
    engine = InferenceEngine(min_runs=2)
    watch(engine, "1", 0.0, 100.0)
    watch(engine, "2", 1.0, 90.0)
    found = engine.profile("a")
    assert found is not None
    assert found.slowdown(1.0, remote=True) == pytest.approx(1.0)


def test_models_are_renewed_when_runs_have_doubled() -> None:
    engine = InferenceEngine(min_runs=2)
    watch(engine, "1", 0.0, 100.0)
    watch(engine, "2", 1.0, 110.0)
    first = engine.profile("a")
    watch(engine, "3", 1.0, 200.0)
    assert engine.profile("a") is first
    watch(engine, "4", 1.0, 200.0)
    assert engine.profile("a") is not first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": {"a": 1.0}}, r"models\['a'\]"),
        ({"models": [1]}, "models"),
        ({"min_runs": 0}, "min_runs = 0"),
    ],
    ids=["no profile", "no mapping", "no runs"],
)
def test_wrong_arguments_of_the_engine_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InferenceEngine(**options)  # type: ignore[arg-type]


def test_wrong_options_of_the_service_are_named() -> None:
    with pytest.raises(ValueError, match="engine"):
        DRMaestroService(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="profiles: not an option of DRMaestroService"):
        DRMaestroService(profiles={})  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="window"):
        DRMaestroService(window=0)


def test_the_service_keeps_the_contract_of_policies() -> None:
    topologies = share(default_topologies(), 2, of=3)
    check_policy(DRMaestroService(InferenceEngine({"a": TRUE})), topologies=topologies, states=thorough(6, 1))


def two_machines() -> tuple[tp.Cluster, tp.JobGraph]:
    """Return two machines with CPUs for one job each, and a job of "a"."""
    cluster = tp.Cluster(rodinia.machines(2), rodinia.MACHINE)
    return cluster, tp.JobGraph.independent(1).with_(cpus=100, profile="a")


def test_a_measured_load_sends_jobs_elsewhere() -> None:
    cluster, job = two_machines()
    cluster.allocate("noise", [0], tp.JobGraph.independent(1).with_(profile="unknown"))
    service = DRMaestroService(InferenceEngine({"a": TRUE}))
    placement = service.place(job, cluster)
    assert placement is not None
    assert placement.hosts[0].machine == 0  # nothing is known of the noise: a tie
    service.measured(Reading(1.0, {"noise": {0: 0.9}}))
    placement = service.place(job, cluster)
    assert placement is not None
    assert placement.hosts[0].machine == 1
    cluster.release("noise")  # its load goes with it, before the next reading
    placement = service.place(job, cluster)
    assert placement is not None
    assert placement.hosts[0].machine == 0


def test_unknown_applications_have_a_neutral_cost() -> None:
    cluster, job = two_machines()
    service = DRMaestroService()
    service.measured(Reading(1.0, {"noise": {0: 1.0}}))
    cluster.allocate("noise", [0], tp.JobGraph.independent(1))
    placement = service.place(job, cluster)
    assert placement is not None
    assert placement.hosts[0].machine == 0
    assert placement.scores["network_slowdown"] == 1.0


def served(service: DRMaestroService, seed: int) -> Result:
    return simulate(
        rodinia.machines(4),
        rodinia.workload(128, 4, seed),
        service,
        performance=NetworkContention(rodinia.PROFILES),
        hosts=rodinia.MACHINE,
        observer=service,
        measure_every=10.0,
    )


def test_the_service_learns_what_the_simulation_was_made_of() -> None:
    engine = InferenceEngine()
    served(DRMaestroService(engine), 3)
    for name, true in rodinia.PROFILES.items():
        found = engine.profile(name)
        assert found is not None
        full = found.slowdown(1.0, remote=True)
        assert full == pytest.approx(true.slowdown(1.0, remote=True), rel=0.02), name


def test_recorded_telemetry_teaches_the_same() -> None:
    log, service = TelemetryLog(), DRMaestroService()
    simulate(
        rodinia.machines(4),
        rodinia.workload(128, 4, 3),
        service,  # hears nothing, so it decides as if all applications were unknown
        performance=NetworkContention(rodinia.PROFILES),
        hosts=rodinia.MACHINE,
        observer=log,
        measure_every=10.0,
    )
    once, twice = InferenceEngine(), InferenceEngine()
    log.replay(once)
    log.replay(twice)
    assert [once.profile(name) for name in rodinia.PROFILES] == [
        twice.profile(name) for name in rodinia.PROFILES
    ]
    assert once.profile("nw") is not None
    assert service.engine.profile("nw") is None


# ---- Algorithms 4 and 5 as printed ------------------------------------------------------------------------


def test_a_merged_mapping_tries_again_in_the_next_plan_only() -> None:
    """The flow puts both jobs on the first machine, whose CPUs and memory add up to enough; its CPUs do not suffice."""
    cluster = tp.Cluster(rodinia.machines(2), tp.HostResources(cpus=20, memory_gb=60.0))
    one = tp.JobGraph.independent(1)
    queue = [
        QueuedJob("first", one.with_(cpus=10, memory_gb=10.0)),
        QueuedJob("second", one.with_(cpus=20, memory_gb=5.0)),
    ]
    assert [name for name, _ in DRMaestro().plan(queue, cluster, 0.0).start] == ["first", "second"]
    merged = DRMaestro(retry=False)
    [(name, placement)] = merged.plan(queue, cluster, 0.0).start
    assert name == "first"
    cluster.allocate(name, placement)
    assert [name for name, _ in merged.plan(queue[1:], cluster, 1.0).start] == ["second"]


def test_a_merged_mapping_keeps_the_contract_of_policies() -> None:
    topologies = share(default_topologies(), 0, of=3)
    check_policy(DRMaestro(retry=False), topologies=topologies, states=thorough(6, 1))
