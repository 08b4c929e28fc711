"""Functions that the C library calls in any thread; `cpp/c_interface` converts the arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from threading import Lock
from typing import Any, cast

from topoplace import _checks, discovery, machines, policies
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import HostResources
from topoplace.engine.plan import Explanation
from topoplace.engine.policy import Policy
from topoplace.errors import AllocationError, TopologyError
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology

_MAX_KEPT_CHARACTERS = 4096
"""Longest text of a job whose parsed form is kept; longer texts are parsed each time."""


class CallOutcome(IntEnum):
    """The kind of decision for a job; the numbers are those of `topoplace_outcome` in topoplace.h."""

    PLACED = 1
    WAITS = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class SharedCluster:
    """A cluster with a lock: one thread at a time uses it."""

    cluster: Cluster
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class SharedPolicy:
    """A policy with a lock: one thread at a time uses it. To use a cluster as well, lock the policy first."""

    policy: Policy
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class PlaceDecision:
    """An explanation of a decision, and the topology whose GPUs it names."""

    explanation: Explanation
    topology: Topology

    def to_json(self) -> str:
        """Return the decision as JSON, as `topoplace place --json` prints it."""
        return json.dumps(self.explanation.to_dict(self.topology), allow_nan=False)

    def parts(self) -> tuple[int, str, tuple[int, ...], bool, tuple[tuple[str, float], ...], PlaceDecision]:
        """Return what the C library keeps: outcome, reason, GPUs by task, proof, scores, and this object."""
        if refusal := self.explanation.refusal:
            outcome = CallOutcome.NEVER if refusal.permanent else CallOutcome.WAITS
            return int(outcome), refusal.reason, (), False, (), self
        placed = self.explanation.candidates[0]
        return int(CallOutcome.PLACED), "", placed.gpus, placed.optimal, tuple(placed.scores.items()), self


Parts = tuple[int, str, tuple[int, ...], bool, tuple[tuple[str, float], ...], PlaceDecision]


# ---- what handles stand for ------------------------------------------------------------------------------------


def topology_from_text(text: bytes, format_: str | None, options: str | None) -> Topology:
    """Read machines from a text in any known format; TopologyError if it describes something else.

    format_: the name of the format; None for the one that recognises the text. options: JSON such as
    `{"gpu_model": "A100"}`.
    """
    found = discovery.read(text, **{**_options(options), "format": format_})
    if not isinstance(found, Topology):
        raise TopologyError(f"text describes a {type(found).__name__}, not machines with GPUs")
    return found


def built_in_topology(name: str) -> Topology:
    """Return the built-in machine of this name; for any other name, ValueError suggests similar ones."""
    return machines.get(name)


def topology_of(shared: SharedCluster) -> Topology:
    """Return the topology of a cluster."""
    return shared.cluster.topology


def gpu_of(topology: Topology, gpu: int) -> tuple[str, str, int]:
    """Return the name of a GPU, its machine, and its number there; ValueError if there is no such GPU."""
    gpu = _checks.integer(gpu, "gpu", ValueError, low=0, high=topology.num_gpus - 1)
    machine = topology.machine_names[int(topology.machine_of[gpu])]
    return topology.gpus[gpu].name, machine, topology.local_index[gpu]


def new_cluster(topologies: Sequence[Topology], options: str | None) -> SharedCluster:
    """Return a cluster of these machines, all GPUs free.

    options: JSON with arguments of `Topology.cluster` for several topologies, such as `{"racks": 2}`, and with `hosts`:
    `{"cpus": 64, "memory_gb": 512}` for all machines, a list with one such object for each, or an object by name.
    """
    given = _options(options)
    hosts = _hosts(given.pop("hosts", None))
    if len(topologies) == 1 and not given:
        return SharedCluster(Cluster(topologies[0], hosts))
    try:
        joined = Topology.cluster(topologies[0] if len(topologies) == 1 else topologies, **given)
    except TypeError as error:
        raise ValueError(f"options: {_without_function(error)}") from None
    return SharedCluster(Cluster(joined, hosts))


def restored_cluster(snapshot: bytes) -> SharedCluster:
    """Return the cluster of a snapshot; SnapshotError if the bytes are damaged."""
    return SharedCluster(Cluster.restore(snapshot))


def new_policy(name: str | None, options: str | None) -> SharedPolicy:
    """Return the policy of this name, the default for None; ValueError for an unknown name or option.

    options: JSON with arguments of its class.
    """
    return SharedPolicy(policies.get(policies.DEFAULT if name is None else name, **_options(options)))


# ---- decisions -------------------------------------------------------------------------------------------------


def place(shared: SharedCluster, by: SharedPolicy, job_id: str, job: str) -> Parts:
    """Decide where to run a job, and allocate its GPUs to `job_id`; AllocationError if this id already runs."""
    graph = _job(job)
    with by.lock, shared.lock:
        cluster, policy = shared.cluster, by.policy
        if cluster.runs(job_id):  # also if the policy would let it wait
            raise AllocationError(f"job_id = {_checks.shown(job_id)} runs already")
        placement = policy.place(graph, cluster)
        if placement is None:
            explained = policy.explain(graph, cluster, top=1)
        else:
            cluster.allocate(job_id, placement, graph)
            explained = Explanation(policy.name, (placement,))
    return PlaceDecision(explained, cluster.topology).parts()


def explain(shared: SharedCluster, by: SharedPolicy, job: str, top: int) -> Parts:
    """Return what `place` would decide, with up to `top` candidates; the cluster does not change."""
    top = _checks.integer(top, "top", ValueError, low=1, high=1000)
    graph = _job(job)
    with by.lock, shared.lock:
        explained = by.policy.explain(graph, shared.cluster, top=top)
    return PlaceDecision(explained, shared.cluster.topology).parts()


def allocate(shared: SharedCluster, job_id: str, gpus: Sequence[int], job: str | None) -> None:
    """Allocate these GPUs, such as those of a job that runs already; errors are those of `Cluster.allocate`."""
    graph = None if job is None else _job(job)
    with shared.lock:
        shared.cluster.allocate(job_id, gpus, graph)


def release(shared: SharedCluster, job_id: str) -> None:
    """Free all GPUs and host resources of a job; AllocationError if it holds none."""
    with shared.lock:
        shared.cluster.release(job_id)


def set_drained(shared: SharedCluster, gpu: int, drained: bool) -> None:
    """Exclude a GPU from new allocations, or allow it again (False); AllocationError if there is no such GPU."""
    with shared.lock:
        (shared.cluster.drain if drained else shared.cluster.undrain)(gpu)


def hold(shared: SharedCluster, gpu: int, reason: str) -> None:
    """Hold a GPU back from new allocations for this reason; AllocationError if there is no such GPU."""
    with shared.lock:
        shared.cluster.hold([gpu], reason=reason)


def unhold(shared: SharedCluster, gpu: int) -> None:
    """Release a GPU from `hold`; AllocationError if there is no such GPU."""
    with shared.lock:
        shared.cluster.unhold([gpu])


def free_gpus(shared: SharedCluster) -> tuple[int, ...]:
    """Return the GPUs that are healthy, neither drained nor held, and free as a whole; ascending."""
    with shared.lock:
        return shared.cluster.free_gpus()


def gpus_of(shared: SharedCluster, job_id: str) -> tuple[int, ...]:
    """Return the GPUs of a job in task order; () if it holds none."""
    with shared.lock:
        return shared.cluster.gpus_of(job_id)


def snapshot(shared: SharedCluster) -> bytes:
    """Return the cluster as bytes that `restored_cluster` reads."""
    with shared.lock:
        return shared.cluster.snapshot()


# ---- arguments -------------------------------------------------------------------------------------------------


def _job(text: str) -> JobGraph:
    return _kept_job(text) if len(text) <= _MAX_KEPT_CHARACTERS else JobGraph.from_json(text)


_kept_job = lru_cache(maxsize=1024)(JobGraph.from_json)  # job graphs are immutable, so callers can share one


def _options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"options = {_checks.shown(text)} is not JSON: {error}") from None
    _checks.instance(found, dict, "options", ValueError)
    return cast("dict[str, Any]", found)


def _hosts(given: object) -> Any:
    """Return what `Cluster` takes as hosts, made of JSON."""
    if given is None:
        return None
    if isinstance(given, list):
        return [_host(one, f"hosts[{i}]") for i, one in enumerate(cast("list[object]", given))]
    _checks.instance(given, dict, "hosts", ValueError)
    by_name = cast("dict[str, object]", given)
    if by_name and all(isinstance(one, dict) for one in by_name.values()):
        return {name: _host(one, f"hosts[{name!r}]") for name, one in by_name.items()}
    return _host(given, "hosts")


def _host(given: object, what: str) -> HostResources:
    _checks.instance(given, dict, what, ValueError)
    try:
        return HostResources(**cast("dict[str, Any]", given))
    except TypeError as error:
        raise ValueError(f"{what}: {_without_function(error)}") from None


def _without_function(error: TypeError) -> str:
    """Return what a call complains about, without the name of the function."""
    return str(error).partition("() ")[2] or str(error)
