"""Threads that make calls to the API server, so that decisions do not wait for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Literal, NamedTuple

from topoplace_hosts.kubernetes.client import api
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.kubernetes.objects.pod import Pod

_log = logging.getLogger(__name__)
Call = Callable[[Connection], None]
_BACKOFF_S = (0.05, 0.2, 1.0, 5.0)
_NO_ANSWER = (0, 429)
_CONFLICTS = 6
"""Limit on the retries of a binding after conflicts."""


class Calls:
    """A few threads, each with a connection, that make calls in the order in which they were added."""

    def __init__(self, access: Access, threads: int, most: int) -> None:
        """most: limit on the number of waiting calls."""
        self.stopped = Event()
        self._queue: Queue[Call | None] = Queue(most)
        self._threads = [Thread(target=self._run, args=(access,), daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def add(self, call: Call) -> None:
        """Add a call; wait while the queue is full."""
        self._queue.put(call)

    def offer(self, call: Call) -> None:
        """Add a call, or drop it if the queue is full."""
        with suppress(Full):
            self._queue.put_nowait(call)

    @property
    def is_busy(self) -> bool:
        """Return True if calls wait."""
        return not self._queue.empty()

    def stop(self) -> None:
        """Stop the threads after the calls that they are making."""
        self.stopped.set()
        for _ in self._threads:
            with suppress(Full):
                self._queue.put_nowait(None)
        for thread in self._threads:
            thread.join(2.0)

    def _run(self, access: Access) -> None:
        connection = Connection(access)
        while not self.stopped.is_set():
            call = self._queue.get()
            if call is None:
                break
            try:
                call(connection)
            except ApiError as error:
                _log.warning("%s", error)
            except Exception:  # the calls that come after must be made
                _log.exception("a call to the API server failed")
        connection.close()


class RequestOutcome(NamedTuple):
    """The outcome of a binding; "freed" means that the claims of a waiting pod were taken back."""

    pod: Pod
    result: Literal["bound", "refused", "gone", "freed"]
    truth: Any
    """For "refused", the pod as the API server has it; else None."""
    error: str
    claims: tuple[Any, ...] = ()
    """The claims of the pod as the API server has them now, as far as they are known."""


def bind(
    connection: Connection, pod: Pod, annotations: dict[str, str], stopped: Event
) -> RequestOutcome | None:
    """Bind a pod to its node, and retry until the outcome is known; None if stopped before.

    A lost answer leaves open whether the pod is bound: the pod is read, and bound again if it is not. A conflict is
    retried, too, unless the pod is bound or ends, because its place was decided together with other pods.
    """
    for attempt in range(1 << 30):
        try:
            api.bind(connection, pod.namespace, pod.name, pod.uid, pod.node, annotations)
            return RequestOutcome(pod, "bound", None, "")
        except ApiError as error:
            failed = error
        known = settled(connection, pod, str(failed), stopped)
        if known is not None and known.result == "refused" and _is_bound(known.truth, pod, annotations):
            return RequestOutcome(pod, "bound", None, "")  # the answer was lost
        if known is None or not _may_succeed(known, failed, attempt):
            return known
        if stopped.wait(max(failed.retry_after_s, _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)])):
            return None
    return None


def _is_bound(truth: Any, pod: Pod, annotations: dict[str, str]) -> bool:
    """Return True if a pod is bound as it should be."""
    found: dict[str, str] = truth["metadata"].get("annotations") or {}
    return bool(truth["spec"].get("nodeName") == pod.node and annotations.items() <= found.items())


def _may_succeed(known: RequestOutcome, failed: ApiError, attempt: int) -> bool:
    """Return True if the same binding may succeed later."""
    if (
        known.result == "gone"
        or known.truth["spec"].get("nodeName")
        or known.truth["metadata"].get("deletionTimestamp")
    ):
        return False
    return (
        failed.status in _NO_ANSWER or failed.status >= 500 or (failed.status == 409 and attempt < _CONFLICTS)
    )


def settled(connection: Connection, pod: Pod, failed: str, stopped: Event) -> RequestOutcome | None:
    """Return the outcome of a failed binding, from the pod as the API server has it now; None if stopped before."""
    for attempt in range(1 << 30):
        try:
            truth = api.read_pod(connection, pod.namespace, pod.name)
        except ApiError as error:
            if error.status == 404:
                return RequestOutcome(pod, "gone", None, str(error))
            if stopped.wait(_BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]):
                return None
            continue
        if truth["metadata"]["uid"] != pod.uid:
            return RequestOutcome(pod, "gone", None, "another pod has its name")
        return RequestOutcome(pod, "refused", truth, failed)
    return None
