"""Group the pods of Kubernetes into jobs: groups of topoplace, Kueue, Volcano and KAI, and pods of one Workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from topoplace import _checks
from topoplace.errors import KubernetesError, SnapshotError
from topoplace_hosts.kubernetes.objects import annotations as notes
from topoplace_hosts.kubernetes.objects.fields import integer, items, mapping, text, whole
from topoplace_hosts.kubernetes.objects.pod import Pod, pod

_KUEUE = "kueue.x-k8s.io/"
_MOST_PODS = 4096
_OF_A_NODE = ("DaemonSet", "Node")
"""Kinds of owners that make a pod for one node."""
_DEMANDS = {
    "required": f"{_KUEUE}podset-required-topology",
    "preferred": f"{_KUEUE}podset-preferred-topology",
}
"""The annotations that mean the same as fields of a pod set's `topologyRequest`."""


@dataclass(slots=True)
class PodGroup:
    """The pods of one job."""

    job_id: str
    pods: list[Pod] = field(default_factory=list[Pod])
    size: int = 0
    """The number of pods that start together; 0 if the text does not say."""
    seconds: float | None = None
    """The limit in seconds on the run time of its pods; None without one."""
    held: str = ""
    """Why the job may not start; "" if it may."""
    is_bound: bool = False
    """True if the owner of one of its pods, such as a DaemonSet, makes this pod for one node."""


@dataclass(slots=True)
class Objects:
    """The objects of a text that say something about jobs."""

    pods: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    workloads: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The least number of pods of PodGroups, by namespace and name."""

    def add(self, value: Mapping[str, Any]) -> bool:
        """Add an object; return False if it says nothing about jobs."""
        kind = value.get("kind")
        if kind == "Pod":
            self.pods.append(value)
        elif kind == "Workload":
            self.workloads.append(value)
        elif kind == "PodGroup":
            least = integer(
                mapping(value.get("spec"), "spec").get("minMember"), f"{_where(value)}: minMember"
            )
            if not 0 <= least <= _MOST_PODS:
                raise SnapshotError(f"{_where(value)}: minMember = {least} is not 0 to {_MOST_PODS}")
            if _key(value) in self.sizes:
                raise SnapshotError(f"{_where(value)} appears twice")
            self.sizes[_key(value)] = least
        else:
            return False
        return True

    def about(self) -> Iterator[str]:
        """Yield the start of messages about each object, such as "pod default/train"."""
        for value in (*self.pods, *self.workloads):
            with suppress(KubernetesError):
                yield _where(value)


def groups(objects: Objects, gpu_resource: str) -> Iterator[PodGroup]:
    """Yield the jobs of the pods and Workloads; SnapshotError names an object that cannot be read."""
    found: dict[str, PodGroup] = {}
    owners = {f"{_namespace(one)}/{owner}" for one in objects.workloads for owner in _owners(one)}
    seen: set[str] = set()
    for value in objects.pods:
        if _key(value) in seen:
            raise SnapshotError(f"{_where(value)} appears twice")
        seen.add(_key(value))
        one = _pod(value, gpu_resource, _where(value))
        if not one.ended:
            _add(one, value, found, objects.sizes, owners)
    for value in objects.workloads:
        group = _of_workload(value, gpu_resource)
        names = {f"{_namespace(value)}/{name}" for name in (*_owners(value), _name(value))}
        if group is not None and names.isdisjoint(found):
            found[group.job_id] = group
    yield from found.values()


# ---- pods ------------------------------------------------------------------------------------------------------


def _pod(value: Mapping[str, Any], gpu_resource: str, where: str) -> Pod:
    try:
        return pod(value, gpu_resource)
    except KubernetesError as error:
        raise SnapshotError(f"{where}: {error}") from None


def _add(
    one: Pod, value: Mapping[str, Any], found: dict[str, PodGroup], sizes: Mapping[str, int], owners: set[str]
) -> None:
    try:
        group = one.group
    except KubernetesError as error:
        raise SnapshotError(f"pod {one.namespace}/{one.name}: {error}") from None
    name, size = (group.name, group.size) if group else (_other_group(value), 0)
    if not name:
        name = next((owner for owner in _owners(value) if f"{one.namespace}/{owner}" in owners), one.name)
    job_id = f"{one.namespace}/{name}"
    job = found.setdefault(job_id, PodGroup(job_id, size=size or sizes.get(job_id, 0)))
    job.pods.append(one)
    spec = mapping(value.get("spec"), "spec")
    if limit := integer(spec.get("activeDeadlineSeconds"), f"pod {job_id}: activeDeadlineSeconds"):
        job.seconds = limit
    job.held = job.held or _gates(spec)
    job.is_bound = job.is_bound or any(kind in _OF_A_NODE for kind in _kinds_of_owners(value))


def _other_group(value: Mapping[str, Any]) -> str:
    """Return the name of the PodGroup of Volcano, KAI or coscheduling that a pod names; "" for none."""
    metadata = mapping(value.get("metadata"), "metadata")
    for which in ("labels", "annotations"):
        named = mapping(metadata.get(which), which)
        for key in notes.OTHER_GROUPS:
            if named.get(key):
                return text(named[key], key)
    return ""


def _gates(spec: Mapping[str, Any]) -> str:
    """Return the gates that hold a pod, but those of Kueue, which opens them once there are GPUs."""
    names = (
        mapping(one, "schedulingGates").get("name") for one in items(spec.get("schedulingGates"), "gates")
    )
    held = [str(name) for name in names if not str(name).startswith(_KUEUE)]
    return f"gate {_checks.shown(held[0])}" if held else ""


# ---- Workloads of Kueue ----------------------------------------------------------------------------------------


def _of_workload(value: Mapping[str, Any], gpu_resource: str) -> PodGroup | None:
    """Return a Workload that waits; None for one that is finished, or admitted without pods."""
    if {"Finished", "Admitted"} & set(_conditions(value)):
        return None
    spec = mapping(value.get("spec"), "spec")
    name = next(iter(_owners(value)), _name(value))
    job = PodGroup(
        f"{_namespace(value)}/{name}", held="" if spec.get("active") is not False else "not active"
    )
    for item in items(spec.get("podSets"), f"{_where(value)}: podSets"):
        pod_set = mapping(item, "podSets")
        count = integer(pod_set.get("count"), f"{_where(value)}: count")
        if not 0 <= count <= _MOST_PODS:
            raise SnapshotError(f"{_where(value)}: count = {count} is not 0 to {_MOST_PODS}")
        one = _pod(_template(pod_set, value), gpu_resource, _where(value))
        one = replace(one, priority=integer(spec.get("priority"), f"{_where(value)}: priority"))
        job.pods += [one] * count
    if limit := integer(
        spec.get("maximumExecutionTimeSeconds"), f"{_where(value)}: maximumExecutionTimeSeconds"
    ):
        job.seconds = limit
    return job if job.pods else None


def _template(pod_set: Mapping[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pod of a pod set, as it will be made."""
    template = mapping(pod_set.get("template"), "template")
    own, outer = mapping(template.get("metadata"), "metadata"), mapping(value.get("metadata"), "metadata")
    asked = mapping(pod_set.get("topologyRequest"), "topologyRequest")
    demands = {key: asked[name] for name, key in _DEMANDS.items() if asked.get(name)}
    metadata = {
        **own,
        "uid": outer.get("uid") or "-",
        "namespace": _namespace(value),
        "name": _name(value),
        "creationTimestamp": outer.get("creationTimestamp"),
        "annotations": {**mapping(own.get("annotations"), "annotations"), **demands},
    }
    return {"metadata": metadata, "spec": template.get("spec")}


def _conditions(value: Mapping[str, Any]) -> Iterator[str]:
    status = mapping(value.get("status"), "status")
    for item in items(status.get("conditions"), "conditions"):
        condition = mapping(item, "conditions")
        if condition.get("status") == "True":
            yield str(condition.get("type"))


# ---- names -----------------------------------------------------------------------------------------------------


def _metadata(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(whole(value, "object").get("metadata"), "metadata")


def _namespace(value: Mapping[str, Any]) -> str:
    return text(_metadata(value).get("namespace"), "metadata.namespace")


def _name(value: Mapping[str, Any]) -> str:
    return text(_metadata(value).get("name"), "metadata.name")


def _key(value: Mapping[str, Any]) -> str:
    return f"{_namespace(value)}/{_name(value)}"


def _where(value: Mapping[str, Any]) -> str:
    """Return the start of messages about an object."""
    return f"{str(value.get('kind')).lower()} {_key(value)}"


def _kinds_of_owners(value: Mapping[str, Any]) -> Iterator[object]:
    for item in items(_metadata(value).get("ownerReferences"), "ownerReferences"):
        yield mapping(item, "ownerReferences").get("kind")


def _owners(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what has made an object, such as a Job."""
    for item in items(_metadata(value).get("ownerReferences"), "ownerReferences"):
        yield text(mapping(item, "ownerReferences").get("name"), "ownerReferences.name")
