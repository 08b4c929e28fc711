"""Write and read clusters as bytes: a header with a checksum, the topology, jobs and hosts, and the native state.

The format is:

    topoplace-cluster 2 SHA-256 of the next two lines
    the topology as JSON
    the job graphs by id, or [job graphs, host resources], as JSON
    the native state, which has a checksum of its own
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from topoplace import _checks
from topoplace._core import ClusterState
from topoplace.cluster.hosts import Hosts
from topoplace.errors import SnapshotError
from topoplace.jobs.job_graph import JobGraph
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


def parsed(snapshot: bytes) -> tuple[Topology, ClusterState, dict[str, JobGraph], Hosts]:
    """Return the topology, GPU allocations, job graphs by id, and host resources in a snapshot.

    SnapshotError states what is wrong with bytes that `written` did not produce.
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
) -> tuple[Topology, ClusterState, dict[str, JobGraph], Hosts]:
    topology = Topology.from_json(text.decode("ascii"))
    restored = ClusterState.restore(state, topology.num_gpus)
    known, kept = _described(described)
    hosts = Hosts.from_dict(topology.machine_names, kept)
    jobs = {job_id: JobGraph.from_json(job) for job_id, job in known.items()}
    if unknown := jobs.keys() - restored.allocations().keys() - hosts.held.keys():
        raise SnapshotError(f"snapshot: job {_checks.shown(min(unknown))} holds no GPUs")
    return topology, restored, jobs, hosts


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
