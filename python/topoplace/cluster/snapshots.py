"""Write and read clusters as bytes: a header with a checksum, the topology, jobs and hosts, and the native state.

The format is:

    topoplace-cluster 2 SHA-256 of the next two lines
    the topology as JSON
    the job graphs by id, or [job graphs, host resources], as JSON
    the native state, which has its own checksum
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from topoplace import _checks
from topoplace._core import ClusterState
from topoplace.cluster.hosts import (
    HostAllocation,
    HostResources,
    Hosts,
    amounts,
    first_gpus,
    resources_of,
)
from topoplace.cluster.job_data import number_of
from topoplace.errors import SnapshotError
from topoplace.jobs.job_graph import JobGraph
from topoplace.mig import named, profiles_of_gpu
from topoplace.topology.topology import Topology

_MAGIC = b"topoplace-cluster 2 "
_NO_HOSTS: Mapping[str, Any] = MappingProxyType({"resources": (), "drained": (), "held": {}})


def written(topology: Topology, state: ClusterState, jobs: Mapping[str, JobGraph], hosts: Hosts) -> bytes:
    """Return the snapshot bytes of a cluster, given its parts; equal states give equal bytes.

    state: the GPU allocations. jobs: the job graphs by job id. hosts: the host resources.
    """
    described = {job_id: jobs[job_id].to_json() for job_id in sorted(jobs)}
    held = hosts.to_dict()
    known = [described, held] if any(held.values()) else described
    text = "\n".join((topology.to_json(), json.dumps(known))).encode("ascii")
    return b"\n".join((_header(text), text, state.snapshot()))


def parsed(snapshot: bytes) -> tuple[Topology, ClusterState, tuple[HostResources, ...]]:
    """Return the topology, the state of its jobs, and the host resources of its machines in a snapshot.

    Raise SnapshotError, which says what is wrong, for bytes that `written` did not produce.
    """
    if not isinstance(snapshot, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SnapshotError(f"snapshot = {_checks.shown(snapshot)} is not bytes")
    header, _, rest = bytes(snapshot).partition(b"\n")
    text, _, rest = rest.partition(b"\n")
    described, _, state = rest.partition(b"\n")
    if not header.startswith(_MAGIC):
        raise SnapshotError("snapshot: the header of a topoplace cluster is missing")
    if header != _header(text + b"\n" + described):
        raise SnapshotError("snapshot: the checksum of its topology and jobs is wrong")
    try:
        return _restored(text, described, state)
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise SnapshotError(str(error)) from None


def _restored(
    text: bytes, described: bytes, state: bytes
) -> tuple[Topology, ClusterState, tuple[HostResources, ...]]:
    topology = Topology.from_json(text.decode("ascii"))
    names = topology.machine_names
    known, kept = _described(described)
    resources = resources_of([HostResources(**r) for r in kept["resources"]] or None, names)
    restored = ClusterState.restore(state, topology.num_gpus, first_gpus(topology), amounts(resources))
    restored.set_unhealthy(topology.unhealthy_gpus, unhealthy=True)
    _check_slices(topology, restored)
    graphs = {job_id: JobGraph.from_json(job) for job_id, job in known.items()}
    held = {job_id: HostAllocation.from_dict(one) for job_id, one in kept["held"].items()}
    if unknown := graphs.keys() - restored.allocations().keys() - held.keys():
        raise SnapshotError(f"snapshot: job {_checks.shown(min(unknown))} holds no GPUs")
    hosts = Hosts(names, resources, restored)
    for job_id in (*held, *(job_id for job_id in graphs if job_id not in held)):
        _attach(restored, hosts, job_id, graphs.get(job_id), held.get(job_id))
    for number in kept["drained"]:
        machine = _checks.integer(number, "drained", SnapshotError, low=0, high=len(names) - 1)
        restored.drain([], [machine])
    return topology, restored, resources


def _check_slices(topology: Topology, state: ClusterState) -> None:
    """Raise SnapshotError unless every slice is one that its GPU can have, and every reason to hold is a text."""
    for reason in {reason for reasons in state.held() for reason in reasons.values()}:
        _checks.text(reason, "reason", SnapshotError)
    for gpu in state.sliced_gpus():
        profiles = profiles_of_gpu(topology.gpus[gpu])
        for parts, compute, _ in state.slices(gpu):
            if named(parts, compute, profiles) is None:
                raise SnapshotError(f"snapshot: GPU {gpu} cannot have a slice of parts {parts:#x}")


def _attach(
    state: ClusterState, hosts: Hosts, job_id: str, graph: JobGraph | None, held: HostAllocation | None
) -> None:
    """Give a restored job its graph and host resources; SnapshotError or AllocationError if they are not possible."""
    _checks.text(job_id, "job", SnapshotError)
    if held is not None:
        hosts.check(held, runs=True)
    processes, drives = held.amounts() if held else ((), ())
    status = state.attach(job_id, processes, drives, (graph, held), number_of(graph))
    if status != "ok":
        raise SnapshotError(f"snapshot: job {_checks.shown(job_id)}: {status}")


def _header(text: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(text).hexdigest().encode("ascii")


def _described(text: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Parse the third line of a snapshot: return its job graphs by id and its host resources.

    Snapshots of clusters whose host resources are unknown contain only the job graphs.
    """
    known: Any = json.loads(text)
    if isinstance(known, Mapping):
        return known, _NO_HOSTS  # pyright: ignore[reportUnknownVariableType]
    jobs, hosts = known
    return jobs, hosts
