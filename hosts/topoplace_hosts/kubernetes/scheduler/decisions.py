"""Entries of the journal about pods: what a scheduler was about to bind, for the next one to continue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from topoplace.cluster.cluster import Cluster
from topoplace_hosts.journal import Entry, Journal, Stage, reconcile
from topoplace_hosts.journal.entry import Device, named
from topoplace_hosts.kubernetes.metrics import PodFigures
from topoplace_hosts.kubernetes.objects.annotations import GPUS, written
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.seats import Seat, Seats
from topoplace_hosts.kubernetes.scheduler.waiting import WaitingPods


class Decisions:
    """The entries of a journal about pods; without a journal, nothing is written."""

    def __init__(self, state: ClusterState, journal: Journal | None, figures: PodFigures) -> None:
        """journal: open for writing by this thread, or None. figures: counts of confirmations and differences."""
        self._state = state
        self._journal = journal
        self._figures = figures
        self._entries: list[Entry] = []
        if journal is not None:
            journal.set_topology(state.topology.digest())

    def intend(self, seats: Seats) -> None:
        """Write to the disk where pods go, before they are bound."""
        topology = self._state.topology
        entries = [
            Entry(seat.pod.job_id, Stage.INTENT, named(topology, seat.gpus), f"chosen on {seat.node}")
            for seat in seats
            if seat.pod.requests.gpus
        ]
        self._write(entries)

    def tell(self, pod: Pod) -> None:
        """Note that the API server has bound a pod."""
        self._note(pod, Stage.TOLD, "bound")

    def confirm(self, pod: Pod, *, as_decided: bool) -> None:
        """Note that a watch shows a pod on its node. as_decided: True the first time, if it is as decided here."""
        self._figures.confirmed += as_decided
        self._note(pod, Stage.CONFIRMED, "bound, as the API server shows")

    def as_bound(self, pod: Pod) -> Pod:
        """Return a bound pod with the GPUs that the journal has for it, because users may edit annotations."""
        known = self._journal.latest().get(pod.job_id) if self._journal and pod.requests.gpus else None
        if known is None or known.stage not in (Stage.TOLD, Stage.CONFIRMED):
            return pod
        topology = self._state.topology
        there = named(topology, topology.gpus_of.get(pod.node, ()))
        numbers = [there.index(device) for device in known.gpus if device in there]
        is_whole = len(numbers) == len(known.gpus) == pod.requests.gpus
        if not is_whole or set(numbers) == set(pod.gpus or ()):
            return pod
        self._figures.differences["edited annotation"] += 1
        return replace(pod, annotations={**pod.annotations, GPUS: written(pod.requests, numbers)})

    def end(self, uid: str) -> None:
        """Note that a pod has left its GPUs, or never got them."""
        pod = self._state.pods.get(uid)
        if pod is not None:
            self._note(pod, Stage.ENDED, "gone, or not bound")

    def write_ended(self) -> None:
        """Write the noted entries; a crash before that loses only what the API server still knows."""
        entries, self._entries = self._entries, []
        self._write(entries)

    def resumed(self, waiting: WaitingPods) -> Iterator[Seat]:
        """Yield the seats that were decided but not bound and are still free; then reconcile the journal."""
        if self._journal is None:
            return
        state = self._state
        by_name = {
            device: gpu for gpu, device in enumerate(named(state.topology, range(state.topology.num_gpus)))
        }
        decided = dict(self._journal.in_flight())
        for pod in [waiting.get(uid) for uid in waiting.uids()]:
            entry = decided.get(pod.job_id) if pod else None
            if pod is None or entry is None:
                continue
            seat = self._seat(pod, entry.gpus, by_name)
            if seat is not None:
                yield seat
            else:
                waiting.note_started(pod)
        running: dict[str, tuple[int, ...]] = {}
        pending: dict[str, tuple[int, ...]] = {}
        for pod in state.pods.values():
            if gpus := state.cluster.gpus_of(pod.job_id):
                (running if state.is_confirmed(pod.uid) else pending)[pod.job_id] = gpus
        for one in reconcile(Cluster(state.topology), running, self._journal, pending=pending):
            self._figures.differences[one.kind] += 1

    def _seat(self, pod: Pod, devices: tuple[Device, ...], by_name: dict[Device, int]) -> Seat | None:
        """Return a seat as the journal has it; None if it is taken, or the node does not take the pod now."""
        gpus = tuple([by_name[device] for device in devices if device in by_name])
        nodes = {machine for machine, _ in devices}
        if len(gpus) != len(devices) or len(gpus) != pod.requests.gpus or len(nodes) != 1:
            return None
        (node,) = nodes
        if any(self._state.cluster.owner(gpu) is not None for gpu in gpus) or pod.refused:
            return None
        return Seat(pod, node, gpus) if self._state.may_run_on(pod, node) else None

    def _note(self, pod: Pod, stage: Stage, why: str) -> None:
        if self._journal is None or not pod.requests.gpus:
            return
        known = self._journal.latest().get(pod.job_id)
        if known is not None and known.stage is stage:
            return
        gpus = named(self._state.topology, self._state.cluster.gpus_of(pod.job_id))
        if gpus:
            self._entries.append(Entry(pod.job_id, stage, () if stage is Stage.ENDED else gpus, why))

    def _write(self, entries: list[Entry]) -> None:
        if self._journal is not None:
            self._journal.append(*entries)
