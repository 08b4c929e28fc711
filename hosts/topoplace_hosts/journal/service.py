"""State that must survive a crash, jobs apart: drained, held and unhealthy GPUs, and GPUs cut into slices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import AllocationError, JournalError
from topoplace.mig import MigSlice
from topoplace_hosts.journal.entry import Device, named

if TYPE_CHECKING:
    from topoplace_hosts.journal.journal import Journal

_FACT = "service"


def keep(cluster: Cluster, journal: Journal) -> None:
    """Write to the journal, if it changed, which GPUs of `cluster` are drained, held, unhealthy or cut into slices."""
    _checks.instance(cluster, Cluster, "cluster", JournalError)
    topology, hosts = cluster.topology, cluster.hosts
    names = topology.machine_names
    held: dict[str, tuple[list[Device], list[str]]] = {}
    for gpu, reason in cluster.held_gpus().items():
        held.setdefault(reason, ([], []))[0].extend(named(topology, [gpu]))
    for machine, reason in sorted(hosts.held_back.items()):
        held.setdefault(reason, ([], []))[1].append(names[machine])
    facts = {
        "drained": [
            named(topology, cluster.drained_gpus()),
            [names[machine] for machine in sorted(hosts.drained)],
        ],
        "held": dict(sorted(held.items())),
        "unhealthy": named(topology, topology.unhealthy_gpus),
        "slices": [[*named(topology, [gpu])[0], list(cluster.slices(gpu))] for gpu in cluster.sliced_gpus],
    }
    journal.set_fact(_FACT, json.dumps(facts))


def recall(cluster: Cluster, journal: Journal) -> tuple[str, ...]:
    """Restore in a cluster without jobs what `keep` wrote; `reconcile` then records the jobs.

    Unhealthy GPUs stay unhealthy, even if a new reading of the topology says that they are healthy. After a repair, use
    `cluster.with_topology(cluster.topology.with_healthy(...))`.

    Returns:
        What could not be done, a sentence each: GPUs and machines that the topology lacks, and slices that a GPU cannot
        have.

    Raises:
        JournalError: If the cluster has jobs, or what was written is damaged.
    """
    _checks.instance(cluster, Cluster, "cluster", JournalError)
    if cluster.native.num_jobs:
        raise JournalError("cluster: it has jobs; recall comes before reconcile")
    text = journal.fact(_FACT)
    if text is None:
        return ()
    try:
        facts = json.loads(text)
        return tuple(_Recalled(cluster).all_of(facts))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise JournalError(f"service = {_checks.shown(text)} is damaged") from None


class _Recalled:
    """A cluster in which facts by name become true again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        topology = cluster.topology
        self._gpus = {name: gpu for gpu, name in enumerate(named(topology, range(topology.num_gpus)))}
        self._machines = {name: number for number, name in enumerate(topology.machine_names)}
        self._lost: dict[str, None] = {}

    def all_of(self, facts: Mapping[str, Any]) -> Iterable[str]:
        """Make the facts true, and return what could not be done."""
        native = self._cluster.native
        for machine, gpu, slices in facts["slices"]:
            self._slice((machine, gpu), slices)
        native.drain(*self._targets(*facts["drained"]))
        for reason, (gpus, machines) in facts["held"].items():
            native.hold(_checks.text(reason, "reason", ValueError), *self._targets(gpus, machines))
        # Journals of versions before this fact have none.
        if broken := self._targets(facts.get("unhealthy", ()), [])[0]:
            self._cluster.take_health(self._cluster.topology.with_unhealthy(broken))
        return self._lost

    def _slice(self, device: Device, slices: Iterable[Iterable[Any]]) -> None:
        for gpu in self._targets([device], [])[0]:
            try:
                self._cluster.slice_gpu(gpu, [MigSlice(*one) for one in slices])
            except AllocationError as error:
                self._lost[f"GPU {device[1]} of {device[0]}: {error}"] = None

    def _targets(
        self, devices: Iterable[Iterable[str]], machines: Iterable[str]
    ) -> tuple[list[int], list[int]]:
        """Return the numbers of GPUs and machines, and note those that the topology lacks."""
        gpus: list[int] = []
        for machine, gpu in devices:
            if (machine, gpu) in self._gpus:
                gpus.append(self._gpus[machine, gpu])
            else:
                self._lost[f"GPU {gpu} of {machine} is not in the topology"] = None
        numbers: list[int] = []
        for name in machines:
            if name in self._machines:
                numbers.append(self._machines[name])
            else:
                self._lost[f"machine {name} is not in the topology"] = None
        return gpus, numbers
