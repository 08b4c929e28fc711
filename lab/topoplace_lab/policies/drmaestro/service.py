"""DRMaestro as a service (thesis, section 5.4): it consumes telemetry, infers models from it, and decides by them.

telemetry ──▶ InferenceEngine ──▶ profiles ─┐
        └───────▶ measured network loads ───────┼──▶ DRMaestro: one flow a resource, one merged mapping
    jobs that arrive ──▶ queue ─────────────────┘

The simulator is its resource manager: it measures, queues jobs, calls the service and carries out its decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from topoplace import _checks
from topoplace.engine.machine_state import ClusterView
from topoplace.policies.drmaestro.free_resources import TopologyColumns
from topoplace.policies.drmaestro.network import NetworkLoad, job_traffic
from topoplace.policies.drmaestro.policy import DRMaestro
from topoplace_lab.policies.drmaestro.inference import InferenceEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topoplace.jobs.network_profile import NetworkProfile
    from topoplace.policies.drmaestro.costs import Costs
    from topoplace_lab.telemetry import FinishedRun, Reading


class ServiceOptions(TypedDict, total=False):
    """Arguments of `DRMaestro` that the service passes on."""

    disaggregate: bool
    costs: Costs | None
    gpu_topology: bool
    max_postponements: int
    window: int
    retry: bool


class DRMaestroService(DRMaestro):
    """DRMaestro with profiles and network loads from telemetry instead of profiles given once.

    It is an observer: give it to `simulate` as the policy and as the `observer`. The network load of a machine is that
    of the last reading, without jobs that ended since then. The expected load of jobs that started since then is added.
    A job of an unknown application has a neutral cost, as in the thesis. Models change only when telemetry arrives, so
    equal telemetry and equal inputs give equal decisions.

    Args:
        engine: The engine that infers models; None for one without initial models.
        options: The options of `DRMaestro` except `network_aware` (True here) and `profiles` (inferred by the engine).
            `retry` is False by default: Algorithms 4 and 5 as printed.

    Raises:
        ValueError: An argument is out of range.
        TypeError: An option is unknown.
    """

    name = "drmaestro-service"

    def __init__(self, engine: InferenceEngine | None = None, **options: Unpack[ServiceOptions]) -> None:
        if unknown := options.keys() - ServiceOptions.__annotations__:
            raise TypeError(f"{', '.join(sorted(unknown))}: not an option of {type(self).__name__}")
        options.setdefault("retry", False)
        super().__init__(network_aware=True, **options)
        self.engine = InferenceEngine() if engine is None else engine
        _checks.instance(self.engine, InferenceEngine, "engine", ValueError)
        self._last: Reading | None = None

    def measured(self, reading: Reading) -> None:
        """Handle a reading of network loads."""
        self._last = reading
        self.engine.measured(reading)

    def finished(self, run: FinishedRun) -> None:
        """Handle a finished run."""
        self.engine.finished(run)

    def profile_of(self, application: str | None) -> NetworkProfile | None:
        """Return the network profile that the engine infers for an application; None if it is unknown."""
        return self.engine.profile(application)

    def network(self, view: ClusterView) -> NetworkLoad:
        """Return the network load by the last reading, with the sensitivities that the engine infers."""
        cluster = view.cluster
        machine_of = cluster.topology.derived(TopologyColumns).machine_list
        network = NetworkLoad.none(cluster.topology.num_machines)
        measured: Mapping[str, Mapping[int, float]] = self._last.sent if self._last else {}
        for job_id, graph in cluster.jobs.items():
            profile = self.profile_of(graph.profile)
            sent, sensitivity = job_traffic(cluster, job_id, profile, machine_of)
            network.send([(machine, 0.0) for machine, _ in sent], sensitivity)
            own = measured.get(job_id)
            network.send(sent if own is None else own.items(), 0.0)
        return network
