"""The cost of running jobs in containers or virtual machines, as a model of run times around another model.

The measurements are those of Amaral's thesis (section 3.1): Sysbench on CPUs, and Netperf between two programs of one
host. It also measured the time to create and leave an environment, but no GPU work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile
from topoplace_lab.simulate.performance.around import AroundModel

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace_lab.simulate.performance.models import PerformanceModel
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


@dataclass(frozen=True, slots=True)
class Environment:
    """The costs of an execution environment, relative to bare metal.

    Args:
        computing: Time to compute over that on bare metal.
        network: Time to send over that on bare metal.
        start: Time to create and leave the environment, over that of a container.

    Raises:
        ValueError: If `computing` or `network` is below 1, or `start` is negative.
    """

    computing: float = 1.0
    network: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        _checks.real(self.computing, "computing", ValueError, low=1.0, high=1e6)
        _checks.real(self.network, "network", ValueError, low=1.0, high=1e6)
        _checks.real(self.start, "start", ValueError, high=1e6)


_BARE_METAL: Final = 35.71
"""Gbit/s between two programs on bare metal (table 3)."""
_VM_COMPUTING: Final = 1.02
"""About 2 % slower than bare metal (section 3.1.4); containers show no difference."""
_NESTED_START: Final = 8.0
_VM_START: Final = 16.0
"""A lower bound (section 3.1.5), relative to a container: 8 for a nested container, and twice that for a VM."""

ENVIRONMENTS: Final[Mapping[str, Environment]] = MappingProxyType(
    {
        "bare-metal": Environment(),
        "container": Environment(1.0, _BARE_METAL / 35.13, 1.0),
        "container-bridge": Environment(1.0, _BARE_METAL / 15.82, 1.0),
        "container-vswitch": Environment(1.0, _BARE_METAL / 16.01, 1.0),
        "nested": Environment(1.0, _BARE_METAL / 33.74, _NESTED_START),
        "nested-bridge": Environment(1.0, _BARE_METAL / 12.53, _NESTED_START),
        "nested-vswitch": Environment(1.0, _BARE_METAL / 12.19, _NESTED_START),
        "vm-bridge": Environment(_VM_COMPUTING, _BARE_METAL / 8.64, _VM_START),
        "vm-vswitch": Environment(_VM_COMPUTING, _BARE_METAL / 7.94, _VM_START),
    }
)
"""The measured environments by name: containers, containers in containers and virtual machines, on the host's network,
a Linux bridge or Open vSwitch. Network costs are those of the throughput from inside to the host (tables 3 and 4);
"nested-vswitch" has a bridge inside."""


class ExecutionEnvironment(AroundModel):
    """A performance model in which all jobs run in one kind of environment.

    Part of a job's run time under `base` is in the network. `profiles` has this share by the name in
    `JobGraph.profile`; it is 0 for a job without one. The rest is computing. Each becomes longer by the environment's
    factor. The start adds `start_seconds`, the time to create and leave one container, times the environment's `start`.
    The thesis shows this time only in a figure without numbers (figure 8), so the default is 0.

    Args:
        environment: A name in `ENVIRONMENTS`, or costs of your own.
        base: See `AroundModel`.
    """

    def __init__(
        self,
        environment: str | Environment,
        base: PerformanceModel | None = None,
        *,
        profiles: Mapping[str, NetworkProfile] = MappingProxyType({}),
        start_seconds: float = 0.0,
    ) -> None:
        if not isinstance(environment, Environment):
            environment = ENVIRONMENTS[_checks.one_of(environment, "environment", ENVIRONMENTS, ValueError)]
        self.environment = environment
        super().__init__(base)
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)
        self.start_seconds = _checks.real(start_seconds, "start_seconds", ValueError, high=1e9)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds under `base`, with the costs and the start of the environment."""
        profile = self.profiles.get(job.job.profile or "", NEUTRAL)
        share, costs = profile.traffic(remote=bool(placement.remote)), self.environment
        longer = (1 - share) * costs.computing + share * costs.network
        return self.start_seconds * costs.start + self.base.run_time(job, placement, random) * longer
