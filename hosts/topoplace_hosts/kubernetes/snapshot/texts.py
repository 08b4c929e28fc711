"""A snapshot of a Kubernetes cluster, from the JSON of `kubectl get nodes,pods -A -o json`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from topoplace import _checks
from topoplace.errors import JobGraphError, KubernetesError, SnapshotError, TopologyError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.snapshot.records import RunningJob, Scheduler, Snapshot, WaitingJob
from topoplace.topology.topology import Topology
from topoplace_hosts.gathered import MOST_GPUS, MOST_JOBS, Gathered, idle, lowest_free, moment, with_models_of
from topoplace_hosts.kubernetes.objects.fields import check_depth, mapping
from topoplace_hosts.kubernetes.objects.node import Node, node
from topoplace_hosts.kubernetes.objects.pod import Place, Pod, Repulsion
from topoplace_hosts.kubernetes.scheduler import predicates
from topoplace_hosts.kubernetes.scheduler.seats import job_on
from topoplace_hosts.kubernetes.snapshot.pod_groups import Objects, PodGroup, groups
from topoplace_hosts.kubernetes.texts import kubernetes_labels, node_devices

_KUBERNETES = Scheduler(
    "Kubernetes",
    "Kubernetes moves no pod: an evicted one ends, and its owner, if it has one, makes another",
)


@dataclass(slots=True)
class KubernetesTexts:
    """The objects of Kubernetes in the sources."""

    nodes: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """Nodes, and the objects that describe their network."""
    objects: Objects = field(default_factory=Objects)
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """The number of objects of each other kind."""

    @property
    def remedy(self) -> str:
        """Return the kubectl command that prints what is needed."""
        return "`kubectl get nodes,pods -A -o json`"

    def add(self, text: str) -> bool:
        """Add a document of `kubectl -o json`; return False for another text. SnapshotError if it cannot be read."""
        if not text.startswith("{"):
            return False
        try:
            value = mapping(json.loads(text), "snapshot")
        except (ValueError, RecursionError) as error:
            raise SnapshotError(f"no JSON as kubectl prints it: {error}") from None
        if "items" not in value and "kind" not in value:
            return False
        items = value.get("items") if "items" in value else [value]
        if not isinstance(items, list):
            raise SnapshotError(f"items = {_checks.shown(items)} is not an array")
        listed = cast("list[object]", items)
        kind = str(value.get("kind")).removesuffix("List")
        for i, one in enumerate(listed):
            check_depth(one, f"items[{i}]")
            self._add({"kind": kind, **mapping(one, f"items[{i}]")})
        return True

    def _add(self, value: Mapping[str, Any]) -> None:
        kind = str(value.get("kind"))
        if kind in ("Node", "HyperNode", "Topology"):
            self.nodes.append(value)
        elif not self.objects.add(value):
            self.left_out[kind] = self.left_out.get(kind, 0) + 1

    def about(self) -> Iterator[str]:
        """Yield the start of messages about each object, such as "node n1"."""
        for value in self.nodes:
            with suppress(KubernetesError):
                yield f"node {mapping(value.get('metadata'), 'metadata').get('name')}"
        yield from self.objects.about()

    @property
    def is_empty(self) -> bool:
        """Return True if there is neither a node nor a pod."""
        return not self.nodes and not self.objects.pods and not self.objects.workloads

    def snapshot(self, topology: Topology | None) -> Snapshot:
        """Return the snapshot; topology: the cluster, or one node; None takes it from labels and capacity."""
        if len(self.objects.pods) + len(self.objects.workloads) > MOST_JOBS:
            raise SnapshotError(f"more than {MOST_JOBS} pods")
        nodes = [node(one) for one in self.nodes if one.get("kind") == "Node"]
        if not nodes:
            raise SnapshotError("there are pods and no nodes; give `kubectl get nodes,pods -A -o json`")
        found = idle(lambda template: _described(self, template), topology)
        found.scheduler = _KUBERNETES
        reader = _Reader(found, nodes)
        resource = _resource(nodes)
        jobs = list(groups(self.objects, resource))
        with_gpus = [job for job in jobs if any(one.requests.gpus for one in job.pods)]
        reader.add_repulsions(jobs)
        reader.add_running(with_gpus)
        reader.add_waiting(with_gpus)
        found.notes += _notes(jobs, resource, self.left_out)
        return found.finished()


def _described(texts: KubernetesTexts, template: Topology | None) -> Topology:
    text = json.dumps({"kind": "List", "items": texts.nodes})
    found = kubernetes_labels.parse(text, template=template)
    if not isinstance(found, Topology):
        raise TopologyError(
            "the nodes do not say how many GPUs they have: no capacity, and no label with a count"
        )
    return found


def _resource(nodes: Sequence[Node]) -> str:
    """Return the resource that counts the nodes' GPUs: NVIDIA's if any has it, else the first of another vendor."""
    resources = {name: None for one in nodes for name in one.allocatable}
    if node_devices.GPU in resources:
        return node_devices.GPU
    return next(filter(node_devices.ACCELERATOR.fullmatch, resources), node_devices.GPU)


class _Reader:
    """A reader of jobs into what is gathered."""

    def __init__(self, found: Gathered, nodes: Sequence[Node]) -> None:
        self._found = found
        by_name = {one.name: one for one in nodes}
        self._nodes = [by_name.get(name) for name in found.cluster.topology.machine_names]
        self._machines: dict[Place, frozenset[str] | None] = {}
        self._repelling: list[tuple[str, str, Repulsion]] = []
        """What running pods keep away, and the label of nodes, with its value, of those from which they keep it."""

    def add_repulsions(self, jobs: Sequence[PodGroup]) -> None:
        """Note which pods the bound ones keep away from which nodes."""
        labels = {one.name: one.labels for one in self._nodes if one is not None}
        for one in (one for job in jobs for one in job.pods if one.node in labels):
            for term in one.repulsions:
                if value := labels[one.node].get(term.topology_key):
                    self._repelling.append((term.topology_key, value, term))

    def add_running(self, jobs: Sequence[PodGroup]) -> None:
        """Add the bound pods: first those whose GPUs are known, as the others then have the lowest free ones."""
        bound = [(job, [one for one in job.pods if one.node and one.requests.gpus]) for job in jobs]
        for job, pods in sorted(bound, key=lambda one: any(pod.gpus is None for pod in one[1])):
            gpus: list[int] = []
            for one in pods:
                gpus += self._gpus(one, gpus)
            if gpus:
                name = f"{job.job_id} (its pods that run)" if len(pods) < len(job.pods) else job.job_id
                self._found.runs(self._running(name, job, pods, gpus), f"pod {job.job_id}")

    def _running(self, name: str, job: PodGroup, pods: Sequence[Pod], gpus: Sequence[int]) -> RunningJob:
        """Return a job of bound pods, each of which stays whole wherever it is made anew."""
        stays = _why_they_stay(job, pods)
        try:
            graph = with_models_of(self._graph(job, pods), gpus, self._found.cluster.topology)
        except (JobGraphError, KubernetesError) as error:
            return RunningJob(name, tuple(gpus), stays=stays or str(error))
        return RunningJob(name, tuple(gpus), math.inf, graph, self._machines_for(pods), stays)

    def _machines_for(self, pods: Sequence[Pod]) -> frozenset[str] | None:
        """Return the machines on which all of the pods may run; None for all."""
        places = [self._machines_of(one.place) for one in pods]
        places += [self._without_repelled(one) for one in pods]
        allowed = [one for one in places if one is not None]
        return allowed[0].intersection(*allowed[1:]) if allowed else None

    def _without_repelled(self, one: Pod) -> frozenset[str] | None:
        """Return the machines from which no running pod keeps this one away; None for all."""
        known = [node for node in self._nodes if node is not None]
        closed = {
            node.name
            for node in known
            for key, value, term in self._repelling
            if node.labels.get(key) == value and term.means(one.namespace, one.labels)
        }
        return frozenset(node.name for node in known) - closed if closed else None

    def _gpus(self, one: Pod, before: Sequence[int]) -> Sequence[int]:
        """Return the GPUs of a bound pod. before: those of other pods of its job."""
        where = f"pod {one.namespace}/{one.name}"
        topology = self._found.cluster.topology
        own = topology.gpus_of.get(one.node, ())
        if (numbers := one.gpus) is not None:
            if max(numbers, default=0) < len(own):
                return [own[number] for number in numbers]
            raise SnapshotError(
                f"{where} fits nowhere: it has GPU {max(numbers)} of {_checks.shown(one.node)}, which has {len(own)}"
            )
        self._found.assumed.append(where)
        with self._found.cluster.what_if() as state:
            if before:
                state.record(f"{where} (other pods of its job)", before)
            return lowest_free(state, one.node, one.requests.gpus, where)

    def add_waiting(self, jobs: Sequence[PodGroup]) -> None:
        """Add the pods that are not bound."""
        for job in jobs:
            pods = [one for one in job.pods if not one.node]
            if not any(one.requests.gpus for one in pods):
                continue
            try:
                graph = self._graph(job, pods)
            except (JobGraphError, KubernetesError) as error:
                raise SnapshotError(f"pod {job.job_id}: {error}") from None
            self._found.waits(
                WaitingJob(
                    job.job_id,
                    graph,
                    min(moment(one.created) for one in pods),
                    max(one.priority for one in pods),
                    math.inf if job.seconds is None else float(job.seconds),
                    self._machines_for(pods),
                    job.held,
                ),
                f"pod {job.job_id}",
            )

    def _graph(self, job: PodGroup, pods: Sequence[Pod]) -> JobGraph:
        """Return the job of pods that wait, each of them on one node."""
        missing = max(0, job.size - len(job.pods))
        if missing:
            self._found.notes.append(
                f"pod {job.job_id}: {missing} pods of its group are not made yet, and counted."
            )
        with_gpus = [one for one in (*pods, *[pods[0]] * missing) if one.requests.gpus]
        sizes = [one.requests.gpus for one in with_gpus]
        if sum(sizes) > MOST_GPUS:
            raise KubernetesError(f"it asks for {sum(sizes)} GPUs, more than {MOST_GPUS}")
        graph = job_on(self._found.cluster.topology, self._nodes, with_gpus)
        is_whole = any(group.within == MACHINE for group in graph.groups)
        return graph if len(sizes) == 1 or is_whole else graph.grouped(sizes, within=MACHINE)

    def _machines_of(self, place: Place) -> frozenset[str] | None:
        """Return the machines on which pods with these demands may run; None for all."""
        if place not in self._machines:
            known = [one for one in self._nodes if one is not None]
            names = frozenset(one.name for one in known if not predicates.why_not(place, one))
            self._machines[place] = None if len(names) == len(known) else names
        return self._machines[place]


def _why_they_stay(job: PodGroup, pods: Sequence[Pod]) -> str:
    """Return why the bound pods of a job cannot be made anew elsewhere; "" if they can."""
    if len(pods) < max(job.size, len(job.pods)):
        return "not all of its pods run"
    if job.is_bound:
        return "a DaemonSet or a node has made a pod of it"
    if any(one.claims or one.host_ports for one in pods):
        return "a pod of it has resource claims or ports of its node"
    return next((one.refused for one in pods if one.refused), "")


def _notes(jobs: Sequence[PodGroup], resource: str, left_out: Mapping[str, int]) -> Iterator[str]:
    yield "Kubernetes does not say when pods end."
    others: dict[str, list[str]] = {"other devices": [], "resource claims": []}
    for job in jobs:
        for one in job.pods:
            if one.claims:
                others["resource claims"].append(job.job_id)
            if any(_is_device(name) and name != resource for name, _ in one.requests.amounts):
                others["other devices"].append(job.job_id)
    for what, names in others.items():
        if names:
            yield f"Pods that ask for {what}, which are left out: {_checks.some(list(dict.fromkeys(names)))}."
    if left_out:
        kinds = ", ".join(f"{count} {_checks.shown(kind)}" for kind, count in sorted(left_out.items()))
        yield f"Objects that are left out: {kinds}."


def _is_device(resource: str) -> bool:
    return bool(node_devices.ACCELERATOR.fullmatch(resource) or node_devices.MIG_CAPACITY.fullmatch(resource))
