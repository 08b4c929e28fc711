"""The network load of each machine, and how sensitive the jobs there are to additional load."""

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
    """The network load of each of m machines; a batch decision changes its own copy."""

    load: Reals
    """(m,) load of each machine's network, as a fraction of the capacity of its interface."""
    sensitivity_sum: Reals
    """(m,) sum of `NetworkProfile.sensitivity` over the jobs that use each machine's network."""

    @classmethod
    def none(cls, machines: int) -> Self:
        """Return the load of `machines` machines without traffic."""
        return cls(np.zeros(machines), np.zeros(machines))

    def copy(self) -> Self:
        """Return an independent copy of the loads and sensitivities."""
        return type(self)(self.load.copy(), self.sensitivity_sum.copy())

    def send(self, sent: Iterable[tuple[int, float]], sensitivity: float, sign: int = 1) -> None:
        """Add (sign = 1) or remove (sign = -1) a job's load and sensitivity.

        sent: (machine, load) for each part of the traffic; each adds the sensitivity to its machine.
        """
        for machine, load in sent:
            self.load[machine] += sign * load
            self.sensitivity_sum[machine] += sign * sensitivity

    def slowdown(
        self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None), *, remote: bool
    ) -> Reals:
        """Return the slowdown expected from running a job on each of these machines (default: all); 1 means none.

        The result is 1 plus two parts. One is the job's own slowdown (load, at most 1, times its sensitivity). The
        other is the slowdown that it causes there (its traffic times the sensitivity of those jobs). remote: True if
        the job uses remote GPUs.
        """
        suffered = np.minimum(self.load[machines], 1.0) * profile.sensitivity(remote=remote)
        return 1 + suffered + profile.traffic(remote=remote) * self.sensitivity_sum[machines]

    def relative_slowdown(
        self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None), *, remote: bool
    ) -> Reals:
        """Return 1 + sensitivity of the job x load of each machine / load of the fullest machine (section 5.6.5.1).

        The result is 1 everywhere if no machine has any load. machines, remote: as for `slowdown`.
        """
        fullest = float(self.load.max(initial=0.0))
        relative = self.load[machines] / fullest if fullest > 0 else np.zeros_like(self.load[machines])
        return np.asarray(1 + relative * profile.sensitivity(remote=remote))


class RunningTraffic:
    """The network traffic of all running jobs of a cluster."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, NetworkProfile]) -> None:
        """Add up the traffic of the jobs that run now.

        profiles: network profiles by the name in `JobGraph.profile`; a job without one has no traffic and no slowdown.
        """
        self._cluster = cluster
        self._profiles = profiles
        self._machine_of: list[int] = cluster.topology.machine_of.tolist()
        self._forget()

    def network(self) -> NetworkLoad:
        """Return a copy of the current network load; the caller may change it."""
        self._catch_up()
        return self._network.copy()

    def _forget(self) -> None:
        machines = self._cluster.topology.num_machines
        self._position: int | None = None
        """How many changes of the state the load includes; None if all jobs have to be read."""
        self._traffic: dict[str, tuple[list[tuple[int, float]], float]] = {}
        self._owner: dict[int, str] = {}
        self._senders = np.zeros(machines, dtype=np.int64)
        self._network = NetworkLoad.none(machines)

    def _catch_up(self) -> None:
        """Update the load for the GPUs whose owner may have changed; after an interrupt, for all."""
        state = self._cluster.native
        now, position = state.num_changes, self._position
        gpus: Sequence[int] | None = None if position is None else state.changed_since(position)
        if gpus is None:
            self._forget()
            gpus = range(self._cluster.topology.num_gpus)
        self._position = None
        _, owners = self._cluster.occupants(gpus)
        for job_id in dict.fromkeys(self._owner.pop(gpu) for gpu in gpus if gpu in self._owner):
            self._send(*self._traffic.pop(job_id), -1)
        for job_id in owners:
            if job_id not in self._traffic:
                self._add(job_id)
        self._position = now

    def _add(self, job_id: str) -> None:
        for gpu in self._cluster.gpus_of(job_id):
            self._owner[gpu] = job_id
        graph = self._cluster.jobs.get(job_id)
        profile = self._profiles.get((graph.profile if graph else None) or "")
        self._traffic[job_id] = job_traffic(self._cluster, job_id, profile, self._machine_of)
        self._send(*self._traffic[job_id], 1)

    def _send(self, sent: Sequence[tuple[int, float]], sensitivity: float, sign: int) -> None:
        self._network.send(sent, sensitivity, sign)
        for machine, _ in sent:
            self._senders[machine] += sign
            if not self._senders[machine]:  # removes rounding errors
                self._network.load[machine] = self._network.sensitivity_sum[machine] = 0.0


def job_traffic(
    cluster: Cluster, job_id: str, profile: NetworkProfile | None, machine_of: Sequence[int]
) -> tuple[list[tuple[int, float]], float]:
    """Return the expected traffic of a running job, as (machine, load) per GPU and end, and the job's sensitivity.

    profile: None for an unknown application, which sends nothing. machine_of: the machine of each GPU of the cluster.
    """
    profile = profile or NEUTRAL
    held = cluster.hosts.held.get(job_id)
    shares, remote = (held.shares, held.remote) if held else ((), ())
    sent = list(traffic(profile, cluster.gpus_of(job_id), shares, remote, machine_of))
    return sent, profile.sensitivity(remote=bool(remote))
