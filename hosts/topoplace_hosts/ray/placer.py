"""Decide for a Ray cluster, in the driver, with the GPUs that Ray says are free."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from topoplace import _checks, policies
from topoplace.engine.policy import Policy
from topoplace_hosts.ray.gang import Gang
from topoplace_hosts.ray.package import placement_groups
from topoplace_hosts.ray.resources import cluster_now, resource_of

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_POLL_SECONDS = 0.1
_RESERVE_SECONDS = 2.0
_NOTHING: Mapping[str, float] = {}


class RayPlacer:
    """Gives the jobs of a driver exact GPUs of a Ray cluster, to which `ray.init` has connected.

    topology: the machines. On each, Ray was started with the resources of `node_resources`; machines that have not
    joined, or are dead, get no jobs. policy: the policy that decides. Several drivers may have placers: Ray reserves
    all GPUs of a gang or none. A placer whose GPUs are gone decides again.
    """

    def __init__(self, topology: Topology, policy: Policy | str = policies.DEFAULT) -> None:
        self.topology = topology
        self._policy = policies.get(policy) if isinstance(policy, str) else policy
        _checks.instance(self._policy, Policy, "policy", ValueError)
        self._resources = {gpu: resource_of(topology, gpu) for gpu in range(topology.num_gpus)}
        self._gangs: WeakSet[Gang] = WeakSet()
        self._lock = RLock()

    def place(
        self, job: JobGraph, *, per_task: Mapping[str, float] = _NOTHING, timeout: float = 60.0
    ) -> Gang:
        """Reserve GPUs for a job and return the gang.

        per_task: further resources that each task reserves in Ray, such as {"CPU": 4}; CPUs and memory in the job's
        requirements are ignored. timeout: seconds to wait for GPUs. TimeoutError says what was missing at the end.
        ValueError if the job cannot run on the topology, or takes parts of GPUs.
        """
        if job.takes_parts:
            raise ValueError("gpu_fraction and mig cannot be honoured: a GPU is one resource of Ray")
        end = time.monotonic() + _checks.real(timeout, "timeout", ValueError)
        while True:
            with self._lock:
                gang, reason = self._attempt(job, per_task)
            if gang is not None:
                return gang
            if time.monotonic() >= end:
                raise TimeoutError(f"no GPUs for {job.name} after {timeout:g} s: {reason}")
            time.sleep(_POLL_SECONDS)

    def release_dead(self) -> None:
        """Release the gangs whose actors are all dead; `place` does so, too."""
        with self._lock:
            for gang in list(self._gangs):
                gang.release_if_dead()

    # ---- inside ----------------------------------------------------------------------------------------------

    def _attempt(self, job: JobGraph, per_task: Mapping[str, float]) -> tuple[Gang | None, str]:
        """Return the job's gang, or why there is none now."""
        self.release_dead()
        held = {gpu for gang in self._gangs if not gang.is_released for gpu in gang.placement.gpus}
        cluster = cluster_now(self.topology, self._resources, held)
        placement = self._policy.place(job, cluster)
        if placement is None:
            refusal = self._policy.explain(job, cluster, top=1).refusal
            reason = refusal.reason if refusal else "the policy waits"
            if refusal is not None and refusal.permanent:
                raise ValueError(reason)
            return None, reason
        resources = [self._resources[gpu] for gpu in placement.gpus]
        group = placement_groups.placement_group([{**per_task, name: 1.0} for name in resources])
        gang = Gang(job, placement, resources, group)
        if not group.wait(_RESERVE_SECONDS):
            gang.release()
            return None, f"Ray cannot reserve {dict(per_task)} for each task next to GPUs {placement.gpus}"
        self._gangs.add(gang)
        return gang, ""
