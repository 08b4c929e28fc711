"""Follow the machines that nodes describe, as one topology; each change gives a new one."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

from topoplace.errors import KubernetesError, TopologyError
from topoplace.topology.topology import Topology
from topoplace_hosts import log
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.watch import News, Watcher
from topoplace_hosts.kubernetes.machines.texts import LABELS, MachineTexts, node_of

_POLL_S = 0.1
Run = Callable[[Topology, Event], None]
"""Works with a topology until the event is set."""


class FollowedMachines:
    """Follows the ConfigMaps of a namespace; one that cannot be read is logged, and its node has no machine."""

    def __init__(
        self,
        access: Access,
        namespace: str,
        *,
        settle_s: float = 10.0,
        write_log: log.Log = log.nowhere,
    ) -> None:
        """settle_s: seconds to wait for further changes before a new topology is made."""
        self._machines: dict[str, Topology] = {}
        self._texts = MachineTexts()
        self._log = write_log
        self._settle_s = settle_s
        self._lock = Lock()
        self._listed = False
        self._changed_at: float | None = None
        labels = ",".join(f"{key}={value}" for key, value in LABELS.items())
        self._watcher = Watcher(access, "configmaps", self._take, namespace=namespace, labels=labels)

    def run(self, work: Run, stop: Event) -> None:
        """Call `work` with the machines' topology, and again after each change, until `stop` is set.

        The event passed to `work` is set when the machines have changed, or `stop` is set. Without machines, nothing
        runs.
        """
        self._watcher.start()
        waits = False
        try:
            while not stop.is_set():
                topology = self._topology()
                if topology is None:
                    if self._listed and not waits:
                        waits = True
                        self._log("no_machines", error="no node has described its machine yet")
                    stop.wait(_POLL_S)
                    continue
                self._log("machines", machines=topology.num_machines, gpus=topology.num_gpus)
                self._work(work, topology, stop)
        finally:
            self._watcher.stop()

    # ---- inside ----------------------------------------------------------------------------------------------

    def _work(self, work: Run, topology: Topology, stop: Event) -> None:
        end = Event()

        def guard() -> None:
            while not (end.is_set() or stop.is_set() or self._has_settled()):
                end.wait(_POLL_S)
            end.set()

        guarding = Thread(target=guard, name="machines", daemon=True)
        guarding.start()
        try:
            work(topology, end)
        finally:
            end.set()
            guarding.join()

    def _has_settled(self) -> bool:
        changed_at = self._changed_at
        return changed_at is not None and time.monotonic() - changed_at >= self._settle_s

    def _topology(self) -> Topology | None:
        """Return the machines that are known now, by the names of their nodes; None if there are none."""
        with self._lock:
            machines = dict(sorted(self._machines.items())) if self._listed else {}
            self._changed_at = None
        if not machines:
            return None
        try:
            return Topology.cluster(machines, name="kubernetes")
        except TopologyError as error:  # more GPUs than a topology may have
            self._log("machines_refused", error=str(error))
            return None

    def _take(self, news: News) -> None:
        with self._lock:
            before = dict(self._machines)
            if news.type == "FAILED":
                self._log("watch_failed", kind=news.kind, error=str(news.value))
            elif news.type == "LISTED":
                self._machines.clear()
                for value in news.value:
                    self._set(value)
                self._listed = True
            elif news.type == "DELETED":
                self._machines.pop(self._node(news.value), None)
            else:
                self._set(news.value)
            if self._machines != before and self._changed_at is None:
                self._changed_at = time.monotonic()

    def _set(self, value: Any) -> None:
        node = self._node(value)
        try:
            node, machine = self._texts.machine(value)
            self._machines[node] = machine
        except Exception as error:  # whatever is written there, the other machines count
            self._machines.pop(node, None)
            self._log("machine_unreadable", node=node, error=str(error))

    @staticmethod
    def _node(value: Any) -> str:
        try:
            return node_of(value)
        except KubernetesError:
            return ""
