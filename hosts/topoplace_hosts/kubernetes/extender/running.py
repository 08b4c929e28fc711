"""The running extender: it follows the API server in one thread, and answers in others."""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from queue import Empty, Queue
from threading import Condition, Event, Lock
from typing import Any, cast

from topoplace.engine.policy import Policy
from topoplace.topology.topology import Topology
from topoplace_hosts import log
from topoplace_hosts.kubernetes.client import api
from topoplace_hosts.kubernetes.client.access import Access, load_pair
from topoplace_hosts.kubernetes.client.connection import Connection
from topoplace_hosts.kubernetes.client.watch import News, Watcher
from topoplace_hosts.kubernetes.extender.answers import Extender
from topoplace_hosts.kubernetes.extender.server import Answer
from topoplace_hosts.kubernetes.metrics import PodFigures
from topoplace_hosts.kubernetes.objects.annotations import GPUS
from topoplace_hosts.kubernetes.objects.pod import GPU, Pod
from topoplace_hosts.kubernetes.objects.pod import pod as read_pod
from topoplace_hosts.kubernetes.scheduler.calls import RequestOutcome, bind
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.decisions import Decisions
from topoplace_hosts.kubernetes.scheduler.intake import Intake
from topoplace_hosts.kubernetes.scheduler.waiting import WaitingPods

_IDLE_S = 0.2
_MOST_NEWS = 1 << 14


class RunningExtender:
    """Follows the API server, and supplies the answers for an `ExtenderServer`."""

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        access: Access,
        *,
        gpu_resource: str = GPU,
        figures: PodFigures | None = None,
        write_log: log.Log = log.nowhere,
    ) -> None:
        """figures: the counts, which the next extender may continue."""
        self._figures = figures or PodFigures()
        self._counting = Lock()
        self._access = access
        self._log = write_log
        self._news: Queue[News] = Queue(_MOST_NEWS)
        self._stopped = Event()
        self._bindings = 0
        self._binding_ended = Condition()
        state = ClusterState(topology, gpu_resource)
        self._intake = Intake(
            state, WaitingPods(""), Decisions(state, None, self._figures), self._figures, write_log
        )
        self.extender = Extender(state, policy, self._bound)

    def answers(self) -> dict[str, Answer]:
        """Return the answers by their paths."""
        return {
            "/filter": partial(self._timed, self.extender.filter),
            "/prioritize": partial(self._timed, self.extender.prioritize),
            "/bind": partial(self._timed, lambda arguments: self.extender.bind(arguments, self._read)),
        }

    def figures(self) -> PodFigures:
        """Return the counts and the present state."""
        with self.extender.lock:
            self._figures.fragmentation = self.extender.state.fragmentation()
            self._figures.closed_nodes = self.extender.state.closed_nodes()
        return self._figures

    def follow(self, stop: Event, ready: Event) -> None:
        """Keep the state up to date until `stop` is set; set `ready` once nodes and pods are known."""
        watchers = [Watcher(self._access, kind, self._news.put) for kind in ("nodes", "pods")]
        for watcher in watchers:
            watcher.start()
        try:
            while not stop.is_set():
                try:
                    news = self._news.get(timeout=_IDLE_S)
                except Empty:
                    continue
                with self.extender.lock:
                    self._intake.take(news)
                if self._intake.is_complete:
                    ready.set()
        finally:
            self._stopped.set()
            for watcher in watchers:
                watcher.stop()

    def finish(self) -> None:
        """Let no new binding begin, and wait until those under way are finished."""
        self._stopped.set()
        with self._binding_ended:
            self._binding_ended.wait_for(lambda: not self._bindings)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _timed(self, answer: Answer, arguments: Any) -> object:
        """Return an answer, and count the time that it takes and what it says."""
        begin = time.perf_counter()
        found: object = answer(arguments)
        with self._counting:
            self._figures.note_latency(time.perf_counter() - begin)
            self._figures.deferred.update(_why_it_waits(found))
        return found

    def _read(self, namespace: str, name: str) -> Pod:
        with closing(Connection(self._access)) as connection:
            return read_pod(api.read_pod(connection, namespace, name), self.extender.state.gpu_resource)

    def _bound(self, pod: Pod) -> RequestOutcome | None:
        annotations = {GPUS: pod.annotations[GPUS]} if pod.requests.gpus else {}
        with self._counted(), closing(Connection(self._access)) as connection:
            outcome = None if self._stopped.is_set() else bind(connection, pod, annotations, self._stopped)
        is_bound = outcome is not None and outcome.result == "bound"
        with self._counting:
            self._figures.decided += 1
            self._figures.bound += is_bound
            self._figures.not_bound += not is_bound
        event = "bound" if is_bound else "not_bound"
        error = outcome.error if outcome else "stopped"
        name = f"{pod.namespace}/{pod.name}"
        self._log(event, pod=name, node=pod.node, gpus=annotations.get(GPUS, ""), error=error)
        return outcome

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Count a binding while it is under way."""
        with self._binding_ended:
            self._bindings += 1
        try:
            yield
        finally:
            with self._binding_ended:
                self._bindings -= 1
                self._binding_ended.notify_all()


def _why_it_waits(answer: object) -> list[str]:
    """Return why a pod waits after this answer to `filter` or `bind`; [] if it does not."""
    if not isinstance(answer, dict):
        return []
    said = cast("dict[str, Any]", answer)
    nodes: dict[str, Any] = said.get("Nodes") or {}
    is_empty = not (said.get("NodeNames") or nodes.get("items"))
    return ["not bound"] if said["Error"] else ["no node"] if "FailedNodes" in said and is_empty else []


def server_tls(certificate: str, key: str, client_authority: str | None) -> ssl.SSLContext:
    """Return a context for a server; with `client_authority`, clients need a certificate signed by it.

    All three are names of PEM files. OSError if one of them cannot be read or used.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_pair(context, certificate, key)
    if client_authority:
        context.load_verify_locations(client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
