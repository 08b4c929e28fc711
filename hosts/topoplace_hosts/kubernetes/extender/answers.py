"""Answer kube-scheduler's three questions: which nodes, how good they are, and bind. Fields have Go's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final

import numpy as np

from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.policy import Policy
from topoplace.errors import KubernetesError
from topoplace.jobs.job_graph import JobGraph
from topoplace_hosts.kubernetes.objects.annotations import request_of
from topoplace_hosts.kubernetes.objects.fields import mapping, text
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.objects.pod import pod as read_pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import MachineMask
from topoplace_hosts.kubernetes.scheduler.calls import RequestOutcome
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.demands import refuse_together
from topoplace_hosts.kubernetes.scheduler.seats import job_graph

MOST_SCORE: Final = 10
"""The highest score of a node in an extender's answer."""
_MOST_NODES = 1 << 20
Bind = Callable[[Pod], RequestOutcome | None]
"""Binds a pod to its node, with its annotations, and returns the outcome; None if it is unknown."""


class Extender:
    """Answers questions about pods with a policy, one at a time.

    state: the state of the API server, which other threads update under `lock`. bind: carries out a decision.
    """

    def __init__(self, state: ClusterState, policy: Policy, bind: Bind) -> None:
        self.state = state
        self.lock = Lock()
        """Held while the state is read or changed."""
        self._policy = policy
        self._bind = bind

    def filter(self, arguments: Any) -> dict[str, Any]:
        """Return the nodes on which the pod's GPUs are free and suitable, and a reason for each other node."""
        pod, names, items = self._question(arguments)
        if not pod.requests.gpus:
            return _filtered(names, items, {})
        with self.lock:
            rated = self._rated(pod, names)
        return _filtered(
            names, items, {name: why for name, (_, why) in zip(names, rated, strict=True) if why}
        )

    def prioritize(self, arguments: Any) -> list[dict[str, Any]]:
        """Return a score from 0 to 10 for each node: 10 for those with the policy's best choice."""
        pod, names, _ = self._question(arguments)
        if not pod.requests.gpus:
            return [{"Host": name, "Score": 0} for name in names]
        with self.lock:
            rated = self._rated(pod, names)
        ranks = sorted({rank for rank, why in rated if not why})
        step = MOST_SCORE / max(len(ranks) - 1, 1)
        scores = {rank: round(MOST_SCORE - place * step) for place, rank in enumerate(ranks)}
        return [
            {"Host": name, "Score": 0 if why else scores[rank]}
            for name, (rank, why) in zip(names, rated, strict=True)
        ]

    def bind(self, arguments: Any, read: Callable[[str, str], Pod]) -> dict[str, str]:
        """Choose GPUs of the node and bind the pod to them; return the error, "" if there is none.

        read: returns the API server's pod of a namespace and name.
        """
        found = mapping(arguments, "binding")
        namespace, name, uid, node = (
            text(found.get(key), key) for key in ("PodNamespace", "PodName", "PodUID", "Node")
        )
        pod = read(namespace, name)
        if uid and pod.uid != uid:
            return {"Error": f"pod {namespace}/{name} is another one by now"}
        with self.lock:
            if pod.node or pod.ended:
                self.state.set_pod(pod)  # the watch may be late
                return {"Error": "" if pod.node == node else f"the pod is bound to {pod.node}, or has ended"}
            if pod.uid in self.state.pods:
                return {"Error": "the pod is being bound"}
            gpus = self._chosen(pod, node)
            if isinstance(gpus, str):
                return {"Error": gpus}
            bound = self.state.assume(pod, node, gpus)
        return {"Error": self._error_of(bound, self._bind(bound))}

    # ---- inside ----------------------------------------------------------------------------------------------

    def _error_of(self, bound: Pod, outcome: RequestOutcome | None) -> str:
        """Return the error of a binding, or ""; a pod that is not bound frees its GPUs."""
        if outcome is None:
            return "the extender ends, and does not know whether the pod is bound"
        if outcome.result == "bound":
            return ""
        with self.lock:
            if not self.state.is_confirmed(bound.uid):  # else a watch has shown the truth meanwhile
                self.state.remove_pod(bound.uid)
                if outcome.result == "refused":
                    self.state.set_pod(read_pod(outcome.truth, self.state.gpu_resource))
            now = self.state.pods.get(bound.uid)
        return "" if now and (now.node, now.gpus) == (bound.node, bound.gpus) else outcome.error

    def _question(self, arguments: Any) -> tuple[Pod, list[str], dict[str, Any]]:
        """Return the pod, the names of the nodes, and the nodes themselves if they are given."""
        found = mapping(arguments, "arguments")
        pod = read_pod(found.get("Pod"), self.state.gpu_resource)
        if (names := found.get("NodeNames")) is not None:
            listed = _list(names, "NodeNames")
            if not all(isinstance(name, str) for name in listed):
                raise KubernetesError("NodeNames: a name is no text")
            return pod, listed, {}
        items: dict[str, Any] = {}
        for i, one in enumerate(_list(mapping(found.get("Nodes"), "Nodes").get("items"), "Nodes.items")):
            metadata = mapping(
                mapping(one, f"Nodes.items[{i}]").get("metadata"), f"Nodes.items[{i}].metadata"
            )
            items[text(metadata.get("name"), f"Nodes.items[{i}].metadata.name")] = one
        return pod, list(items), items

    def _rated(self, pod: Pod, names: Sequence[str]) -> list[tuple[int, str]]:
        """Return for each node the rank of its best choice, 0 for the best of all nodes, and why it has none."""
        state = self.state
        mask = state.known_gpus()
        job = _job(state, pod)
        ranks = self._ranks(job, mask)
        answers: list[tuple[int, str]] = []
        row_of, last = state.table.row_of, len(mask)
        for name in names:
            row = row_of.get(name, last)
            if row >= last:
                answers.append((0, "the node is not in the topology"))
            elif not mask[row]:
                answers.append((0, "it is unknown which of its GPUs are free"))
            else:
                rank = ranks[row]
                answers.append((rank, "" if rank >= 0 else "it has no such GPUs free"))
        return answers

    def _ranks(self, job: JobGraph, mask: MachineMask) -> list[int]:
        """Return for each machine the place of its best choice among all different ones; -1 if it has none."""
        cluster = self.state.focus(mask)
        ranks = [-1] * len(mask)
        if isinstance(self._policy, MachinePolicy):
            for place, machines in enumerate(self._policy.ranked_machines(job, cluster)):
                for machine in machines:
                    ranks[machine] = place
            return ranks
        for row in np.flatnonzero(mask & (self.state.free_by_row()[: len(mask)] >= job.num_tasks)).tolist():
            ranks[row] = 0
        return ranks

    def _chosen(self, pod: Pod, node: str) -> tuple[int, ...] | str:
        """Return the GPUs of a node that the policy chooses for a pod, or why there are none."""
        if not pod.requests.gpus:
            return ()
        mask = self.state.known_gpus()
        row = self.state.table.row_of.get(node, len(mask))
        if row >= len(mask) or not mask[row]:
            return f"the free GPUs of node {node} are not known"
        only = MachineMask(np.zeros_like(mask))
        only[row] = True
        placement = self._policy.place(_job(self.state, pod), self.state.focus(only))
        return placement.gpus if placement else f"node {node} has no such GPUs free any more"


def _job(state: ClusterState, pod: Pod) -> JobGraph:
    refuse_together(pod, "only the scheduler keeps pods together")
    if request_of(pod.annotations).get("min_bandwidth") is not None:
        raise KubernetesError("min_bandwidth is honoured by the scheduler only")
    return job_graph(state, [pod])


def _list(value: object, what: str) -> list[Any]:
    found: list[Any] | None = value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]
    if found is None or len(found) > _MOST_NODES:
        raise KubernetesError(f"{what} is not an array of up to {_MOST_NODES}")
    return found


def _filtered(names: Sequence[str], items: Mapping[str, Any], failed: Mapping[str, str]) -> dict[str, Any]:
    """Return an ExtenderFilterResult: with nodes if the question had nodes, with names if it had names."""
    kept = [name for name in names if name not in failed]
    nodes = {"items": [items[name] for name in kept]} if items else None
    return {
        "Nodes": nodes,
        "NodeNames": None if items else kept,
        "FailedNodes": dict(failed),
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
