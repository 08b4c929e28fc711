"""A scheduler that runs in a thread, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import topoplace as tp
from kubernetes_objects import nodes_outside
from topoplace_hosts.journal import Journal
from topoplace_hosts.kubernetes.client import access
from topoplace_hosts.kubernetes.scheduler import Scheduler
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import WAIT


class Running:
    """A scheduler in a thread, and what it has logged."""

    def __init__(self, api: ApiServer, topology: tp.Topology, **options: Any) -> None:
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self._made = (api, topology, options)
        self._stop = Event()
        self.ready = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.ready.wait(WAIT)

    def _run(self) -> None:
        api, topology, options = self._made
        journal = options.pop("journal", None)
        with Journal(journal) if journal else _nothing() as opened:
            self.scheduler = Scheduler(
                topology,
                tp.policies.get("topo-aware"),
                access.Access("127.0.0.1", api.port),
                journal=opened,
                write_log=lambda event, **fields: self.logged.append((event, fields)),
                **options,
            )
            self.scheduler.run(self._stop, self.ready.set)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def reasons(self) -> list[str]:
        return [fields["reason"] for event, fields in self.logged if event == "waits"]

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


@contextmanager
def running_scheduler(
    count: int, populate: Callable[[ApiServer, str], None], **options: Any
) -> Iterator[tuple[ApiServer, Running]]:
    """Run a scheduler on nodes n0, n1, ... of a DGX-1 each, which `populate` adds; no GPU may be given out twice.

    The cluster has more nodes than the topology has machines.
    """
    names = [f"n{i}" for i in range(count)]
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count, names=names)
    with ApiServer() as api:
        for outside in nodes_outside():
            api.store.add("nodes", outside)
        for name in names:
            populate(api, name)
        running = Running(api, topology, **options)
        try:
            yield api, running
        finally:
            running.stop()
        assert not api.store.twice


def where(api: ApiServer, name: str) -> str:
    """Return the node that a pod is bound to; empty if it is not bound."""
    return str(api.store.pods()[name]["spec"].get("nodeName", ""))


@contextmanager
def _nothing() -> Iterator[None]:
    yield
