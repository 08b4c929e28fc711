"""Apply events of the API server: nodes and bound pods go to the state, others to the waiting pods."""

from __future__ import annotations

from typing import Any, cast

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts import log
from topoplace_hosts.kubernetes.client.watch import News
from topoplace_hosts.kubernetes.metrics import PodFigures
from topoplace_hosts.kubernetes.objects.annotations import GPUS
from topoplace_hosts.kubernetes.objects.node import node as read_node
from topoplace_hosts.kubernetes.objects.pod import pod as read_pod
from topoplace_hosts.kubernetes.objects.pod import unreadable
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.decisions import Decisions
from topoplace_hosts.kubernetes.scheduler.waiting import WaitingPods

_ENDED = ("Succeeded", "Failed")


class Intake:
    """Applies events about nodes and pods. An object that cannot be read is logged, and no decision uses it."""

    def __init__(
        self,
        state: ClusterState,
        waiting: WaitingPods,
        decisions: Decisions,
        figures: PodFigures,
        write_log: log.Log,
    ) -> None:
        """figures: counts of objects that cannot be read."""
        self._state = state
        self._waiting = waiting
        self._decisions = decisions
        self._figures = figures
        self._log = write_log
        self._listed: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """Return True once all nodes and all pods are listed."""
        return len(self._listed) == 2

    def take(self, news: News) -> None:
        """Apply one event."""
        if news.type == "FAILED":
            self._note("answers", "watch_failed", kind=news.kind, error=str(news.value))
        elif news.type == "LISTED":
            self._take_list(news)
        elif news.kind == "nodes":
            self._take_node(news.value, is_gone=news.type == "DELETED")
        elif news.type == "DELETED":
            self.forget(_identity(news.value)[0])
        else:
            self.take_pod(news.value)

    def take_pod(self, value: Any) -> None:
        """Record the present state of a pod."""
        uid, name = _identity(value)
        try:
            pod = read_pod(value, self._state.gpu_resource)
        except Exception as error:  # a tenant wrote it
            self._note("pods", "pod_unreadable", pod=name, error=why(error))
            self._take_unreadable(uid, value, why(error))
            return
        if pod.ended:
            self.forget(uid)
            return
        if pod.node:
            self._waiting.note_started(pod)
            if uid not in self._state.pods:
                reported, pod = pod, self._decisions.as_bound(pod)
                if reported is not pod:
                    self._log("annotation_edited", pod=name, node=pod.node, gpus=pod.annotations[GPUS])
        known = None if self._state.is_confirmed(uid) else self._state.pods.get(uid)
        self._state.set_pod(pod)
        if uid not in self._state.pods:
            self._waiting.set_pod(pod)
            return
        self._waiting.remove_pod(uid)
        if self._state.is_confirmed(uid):
            as_decided = known is not None and (known.node, known.gpus) == (pod.node, pod.gpus)
            self._decisions.confirm(pod, as_decided=as_decided)

    def forget(self, uid: str) -> None:
        """Forget a pod that is finished or gone."""
        self._decisions.end(uid)
        self._state.remove_pod(uid)
        self._waiting.remove_pod(uid)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _take_list(self, news: News) -> None:
        self._listed.add(news.kind)
        values = cast("list[Any]", news.value)
        there = [_identity(one) for one in values]
        if news.kind == "nodes":
            names = {name for _, name in there}
            gone = [
                node.name for node in self._state.table.nodes if node is not None and node.name not in names
            ]
            for name in gone:
                self._state.remove_node(name)
            for one in values:
                self._take_node(one, is_gone=False)
        else:
            for uid in {*self._state.known_uids(), *self._waiting.uids()} - {uid for uid, _ in there}:
                self.forget(uid)
            for one in values:
                self.take_pod(one)

    def _take_node(self, value: Any, *, is_gone: bool) -> None:
        _, name = _identity(value)
        if not is_gone:
            try:
                self._state.set_node(read_node(value))
                return
            except Exception as error:  # the kubelet of another node must not end this program
                self._note("nodes", "node_unreadable", node=name, error=why(error))
        self._state.remove_node(name)

    def _note(self, what: str, event: str, **fields: str) -> None:
        """Count and log something that cannot be read."""
        self._figures.unreadable[what] += 1
        self._log(event, **fields)

    def _take_unreadable(self, uid: str, value: Any, error: str) -> None:
        """Close the node of a bound pod that cannot be read; one that waits is refused for what is wrong."""
        self.forget(uid)
        spec, phase = _part(value, "spec"), _part(value, "status").get("phase")
        node = spec.get("nodeName")
        if phase in _ENDED:
            return
        if isinstance(node, str) and node:
            self._state.close_for(uid, node)
        elif not node:
            metadata = _part(value, "metadata")
            namespace, name, scheduler = (
                str(one)[:253]
                for one in (metadata.get("namespace"), metadata.get("name"), spec.get("schedulerName"))
            )
            self._waiting.set_pod(unreadable(uid, namespace, name, scheduler, error))


def why(error: Exception) -> str:
    """Return an error's text as the reason why something cannot be read."""
    if isinstance(error, KubernetesError):
        return str(error)
    return f"{type(error).__name__}: {_checks.shown(str(error), 200)}"


def _part(value: Any, name: str) -> dict[str, Any]:
    found: object = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _identity(value: Any) -> tuple[str, str]:
    """Return the uid and the name of an object, for what they are worth."""
    metadata = _part(value, "metadata")
    return str(metadata.get("uid"))[:253], str(metadata.get("name"))[:253]
