"""A pod, as far as a scheduler needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects import annotations as notes
from topoplace_hosts.kubernetes.objects.fields import integer, items, labels, mapping, text, texts, whole
from topoplace_hosts.kubernetes.objects.requests import Requests, requests
from topoplace_hosts.kubernetes.objects.selectors import (
    LabelSelector,
    NodeTerm,
    Requirement,
    equal_labels,
    label_selector,
    node_terms,
)
from topoplace_hosts.kubernetes.objects.taints import Toleration, tolerations
from topoplace_hosts.kubernetes.objects.topology_annotations import TOPOLOGY_ANNOTATIONS

GPU = "nvidia.com/gpu"
"""The default resource that counts GPUs."""


class HostPort(NamedTuple):
    """A port of the node that a pod occupies."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Return True if no node can have both ports."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or _ANY in (self.address, other.address)


_ANY = "0.0.0.0"


class Repulsion(NamedTuple):
    """A term of a pod's required anti-affinity, which keeps other pods out of the pod's topology domain."""

    topology_key: str
    namespaces: tuple[str, ...]
    """The namespaces of these other pods; () for all."""
    selector: LabelSelector

    def means(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return True if a pod in this namespace with these labels is kept out."""
        return (not self.namespaces or namespace in self.namespaces) and self.selector.selects(labels)


class PodClaim(NamedTuple):
    """An entry of a pod's `spec.resourceClaims`."""

    entry: str
    claim: str
    """The name of the claim; "" if it is not yet made from its template."""


class Place(NamedTuple):
    """A pod's demands on a node, amounts apart; pods with equal demands may use the same nodes."""

    selector: tuple[Requirement, ...]
    terms: tuple[NodeTerm, ...] | None
    """The alternatives of the required node affinity; None without one."""
    tolerations: tuple[Toleration, ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, as far as a scheduler needs it."""

    uid: str
    namespace: str
    name: str
    scheduler: str
    node: str
    """The node to which the pod is bound; "" if it waits."""
    ended: bool
    """True if the pod is finished, and holds nothing any more."""
    deleting: bool
    created: str
    priority: int
    may_preempt: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """The annotations of topoplace, and those of other schedulers about pods that belong together."""
    requests: Requests
    place: Place
    host_ports: tuple[HostPort, ...]
    repulsions: tuple[Repulsion, ...]
    gated: bool
    """True if the pod has scheduling gates, and must not be scheduled yet."""
    refused: str
    """Why the pod cannot be scheduled here: a demand that is not supported; "" if there is none."""
    claims: tuple[PodClaim, ...] = ()

    @property
    def job_id(self) -> str:
        """Return the pod's job id, which no other pod has or had."""
        return f"{self.namespace}/{self.name}/{self.uid}"

    @property
    def rank_name(self) -> str:
        """Return the part of the name that a pod has in common with the one that replaces it, if there is one."""
        return self.name.rpartition("-")[0] if notes.JOB_INDEX in self.labels else self.name

    @property
    def gpus(self) -> tuple[int, ...] | None:
        """Return the pod's GPUs by number on its node, from its annotation; None if that does not match the request."""
        return notes.gpus_of(self.annotations, self.requests)

    @property
    def group(self) -> notes.Group | None:
        """Return the pod's group, None if it starts by itself; KubernetesError for wrong labels."""
        return notes.group_of(self.namespace, self.labels, self.annotations)


def pod(value: object, gpu_resource: str = GPU) -> Pod:
    """Return a pod of the API; KubernetesError names the field that cannot be read."""
    found = whole(value, "pod")
    metadata, spec, status = (mapping(found.get(part), part) for part in ("metadata", "spec", "status"))
    uid, namespace, name = (
        text(metadata.get(one), f"metadata.{one}") for one in ("uid", "namespace", "name")
    )
    if not uid or not namespace or not name:
        raise KubernetesError("metadata: a pod has no uid, namespace or name")
    affinity = mapping(spec.get("affinity"), "spec.affinity")
    anti = mapping(affinity.get("podAntiAffinity"), "podAntiAffinity")
    own_labels = labels(metadata.get("labels"), "metadata.labels")
    notes_of_all = mapping(metadata.get("annotations"), "metadata.annotations")
    return Pod(
        uid,
        namespace,
        name,
        text(spec.get("schedulerName"), "spec.schedulerName"),
        text(spec.get("nodeName"), "spec.nodeName"),
        status.get("phase") in ("Succeeded", "Failed"),
        metadata.get("deletionTimestamp") is not None,
        text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        integer(spec.get("priority"), "spec.priority"),
        spec.get("preemptionPolicy") != "Never",
        own_labels,
        _ours(notes_of_all),
        requests(spec, gpu_resource),
        _place(spec),
        tuple(_host_ports(spec)),
        tuple(_repulsions(anti, namespace)),
        bool(items(spec.get("schedulingGates"), "spec.schedulingGates")),
        "; ".join((*_not_honoured(spec), *_unread_groups(spec, own_labels, notes_of_all))),
        tuple(_claims(spec, status)),
    )


def unreadable(uid: str, namespace: str, name: str, scheduler: str, why: str) -> Pod:
    """Return a waiting pod that is refused, because nothing else of it can be read."""
    return Pod(
        uid,
        namespace,
        name,
        scheduler,
        node="",
        ended=False,
        deleting=False,
        created="",
        priority=0,
        may_preempt=False,
        labels={},
        annotations={},
        requests=Requests((), 0, (), 0),
        place=Place((), None, ()),
        host_ports=(),
        repulsions=(),
        gated=False,
        refused=f"what it asks for ({why})",
    )


def _ours(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations that matter here; others are large and of no interest."""
    names = (notes.GPUS, notes.REQUEST, notes.KUEUE_SIZE, *TOPOLOGY_ANNOTATIONS)
    return {name: str(found[name]) for name in names if name in found}


def _place(spec: Mapping[str, Any]) -> Place:
    affinity = mapping(mapping(spec.get("affinity"), "spec.affinity").get("nodeAffinity"), "nodeAffinity")
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    where = "nodeSelectorTerms"
    return Place(
        equal_labels(spec.get("nodeSelector"), "spec.nodeSelector"),
        None if required is None else node_terms(mapping(required, "nodeAffinity").get(where), where),
        tolerations(spec.get("tolerations"), "spec.tolerations"),
    )


def _host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    on_host = spec.get("hostNetwork") is True
    for which in ("containers", "initContainers"):
        for i, container in enumerate(items(spec.get(which), f"spec.{which}")):
            what = f"spec.{which}[{i}]"
            found = mapping(container, what)
            if which == "initContainers" and found.get("restartPolicy") != "Always":
                continue
            for one in items(found.get("ports"), f"{what}.ports"):
                entry = mapping(one, f"{what}.ports")
                number = entry.get("hostPort") or (entry.get("containerPort") if on_host else None)
                port = integer(number, f"{what}.ports: hostPort")
                protocol = text(entry.get("protocol"), f"{what}.ports: protocol") or "TCP"
                if port:
                    yield HostPort(protocol, text(entry.get("hostIP"), f"{what}.ports: hostIP") or _ANY, port)


def _repulsions(anti: Mapping[str, Any], namespace: str) -> Iterator[Repulsion]:
    for one in items(anti.get("requiredDuringSchedulingIgnoredDuringExecution"), "podAntiAffinity"):
        term = mapping(one, "podAntiAffinity")
        selector = label_selector(term.get("labelSelector"), "podAntiAffinity: labelSelector")
        if selector is None:
            continue
        others = texts(term.get("namespaces"), "podAntiAffinity: namespaces")
        everywhere = (
            term.get("namespaceSelector") is not None
        )  # their labels are not known: all are kept away
        spaces = () if everywhere else others or (namespace,)
        yield Repulsion(text(term.get("topologyKey"), "podAntiAffinity: topologyKey"), spaces, selector)


def _not_honoured(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the pod demands and this scheduler cannot honour."""
    affinity = mapping(spec.get("affinity"), "spec.affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        if mapping(affinity.get(kind), kind).get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield f"a required {kind}"
    for one in items(spec.get("topologySpreadConstraints"), "spec.topologySpreadConstraints"):
        if mapping(one, "topologySpreadConstraints").get("whenUnsatisfiable") != "ScheduleAnyway":
            yield "topologySpreadConstraints with DoNotSchedule"
            break
    for i, one in enumerate(items(spec.get("volumes"), "spec.volumes")):
        volume = mapping(one, f"spec.volumes[{i}]")
        if "persistentVolumeClaim" in volume or "ephemeral" in volume:
            yield "a volume claim"
            break
    for i, one in enumerate(items(spec.get("resourceClaims"), "spec.resourceClaims")):
        entry = mapping(one, f"spec.resourceClaims[{i}]")
        if not (entry.get("resourceClaimName") or entry.get("resourceClaimTemplateName")):
            yield f"spec.resourceClaims[{i}], which names no claim and no template,"


def _unread_groups(
    spec: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the PodGroups of others with which a pod without a group of ours would start."""
    found = [notes.unread_group(labels, annotations)]
    if not notes.group_name(labels):
        found += [f"spec.{name}" for name in ("schedulingGroup", "workloadRef") if spec.get(name)]
    remedy = f"(give the pods the labels {notes.GROUP} and {notes.GROUP_SIZE})"
    yield from (f"{one}, a group that is not read {remedy}," for one in found if one)


def _claims(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[PodClaim]:
    """Yield the claims that a pod needs; one that its status says was not necessary is left out."""
    made = {
        text(entry.get("name"), "resourceClaimStatuses.name"): entry.get("resourceClaimName")
        for entry in (
            mapping(one, "resourceClaimStatuses")
            for one in items(status.get("resourceClaimStatuses"), "status.resourceClaimStatuses")
        )
    }
    for i, one in enumerate(items(spec.get("resourceClaims"), "spec.resourceClaims")):
        what = f"spec.resourceClaims[{i}]"
        found = mapping(one, what)
        name, claim = (text(found.get(key), f"{what}.{key}") for key in ("name", "resourceClaimName"))
        if claim or name not in made or made[name]:
            yield PodClaim(name, claim or text(made.get(name), "resourceClaimStatuses.resourceClaimName"))
