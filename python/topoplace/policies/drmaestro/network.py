"""The load of each machine's network, and how much the jobs there suffer from more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile, traffic

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster

Reals = NDArray[np.float64]


@dataclass(slots=True)
class NetworkLoad:
    """Traffic in columns by machine; a decision works on a copy of its own."""

    load: Reals
    """(m,) of the network of each machine."""
    sensitivity_sum: Reals
    """(m,) sum of the sensitivities of jobs on each machine's network."""

    @classmethod
    def none(cls, machines: int) -> Self:
        """Return the load of machines without traffic."""
        return cls(np.zeros(machines), np.zeros(machines))

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.load.copy(), self.sensitivity_sum.copy())

    def send(self, sent: Iterable[tuple[int, float]], sensitivity: float, sign: int = 1) -> None:
        """Add a job's traffic, or take it away."""
        for machine, load in sent:
            self.load[machine] += sign * load
            self.sensitivity_sum[machine] += sign * sensitivity

    def slowdown(
        self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None), *, remote: bool
    ) -> Reals:
        """Return the expected run time of a job on these machines (default: all), relative to running alone.

        It is load times sensitivity in both directions: the job's own slowdown, and the slowdown it causes.
        """
        suffered = np.minimum(self.load[machines], 1.0) * profile.sensitivity(remote=remote)
        return 1 + suffered + profile.traffic(remote=remote) * self.sensitivity_sum[machines]


class RunningTraffic:
    """The traffic of the running jobs, updated whenever GPUs change owner."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, NetworkProfile]) -> None:
        """profiles: of the applications, by the job's `profile`; one without is neutral."""
        self._cluster = cluster
        self._profiles = profiles
        self._machine_of: list[int] = cluster.topology.machine_of.tolist()
        self._traffic: dict[str, tuple[list[tuple[int, float]], float]] = {}
        self._owner: dict[int, str] = {}
        machines = cluster.topology.num_machines
        self._senders = np.zeros(machines, dtype=np.int64)
        self._network = NetworkLoad.none(machines)
        self.changed(range(cluster.topology.num_gpus))

    def network(self) -> NetworkLoad:
        """Return the load now, to work on."""
        return self._network.copy()

    def changed(self, gpus: Sequence[int]) -> None:
        """Read again which jobs hold these GPUs."""
        _, owners = self._cluster.occupants(gpus)
        for job_id in {self._owner.pop(gpu) for gpu in gpus if gpu in self._owner}:
            self._send(*self._traffic.pop(job_id), -1)
        for job_id in owners:
            if job_id not in self._traffic:
                self._add(job_id)

    def _add(self, job_id: str) -> None:
        held = self._cluster.hosts.held.get(job_id)
        gpus = self._cluster.gpus_of(job_id)
        for gpu in gpus:
            self._owner[gpu] = job_id
        graph = self._cluster.jobs.get(job_id)
        profile = self._profiles.get((graph.profile if graph else None) or "", NEUTRAL)
        shares, remote = (held.shares, held.remote) if held else ((), ())
        sent = list(traffic(profile, gpus, shares, remote, self._machine_of))
        self._traffic[job_id] = sent, profile.sensitivity(remote=bool(remote))
        self._send(*self._traffic[job_id], 1)

    def _send(self, sent: Sequence[tuple[int, float]], sensitivity: float, sign: int) -> None:
        self._network.send(sent, sensitivity, sign)
        for machine, _ in sent:
            self._senders[machine] += sign
            if not self._senders[machine]:  # and not what rounding has left
                self._network.load[machine] = self._network.sensitivity_sum[machine] = 0.0
