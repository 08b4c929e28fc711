"""Placer: in each cycle, it reads Slurm's state, decides for waiting jobs, and gives orders to Slurm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.topology.topology import Topology
from topoplace_hosts import log
from topoplace_hosts.free_sockets import fragmentation
from topoplace_hosts.journal import Entry, Journal, Stage, reconcile
from topoplace_hosts.slurm.client import devices, jobs, nodes
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import SlurmJob, node_names
from topoplace_hosts.slurm.client.nodes import SlurmNodes
from topoplace_hosts.slurm.metrics import Figures
from topoplace_hosts.slurm.placer import orders
from topoplace_hosts.slurm.placer.deciding import Deciding
from topoplace_hosts.slurm.placer.machines import check_nodes
from topoplace_hosts.slurm.placer.settings import PlacerSettings
from topoplace_hosts.slurm.placer.truth import Truth, truth_of, unknown_devices
from topoplace_hosts.slurm.placer.waiting import never_starts

_NODES_CYCLES = 4
"""Cycles between two readings of the nodes."""
_CLOCK_S = 2.0
"""Slurm's times are whole seconds: jobs that started this much before the nodes were read may not be counted there."""

_PRUNE_CYCLES = 3600
_KEPT_S = 7 * 86400.0
"""Seconds that the journal keeps finished jobs."""


class Placer:
    """Decides which GPUs the held jobs of a Slurm cluster get.

    Everything that must survive a crash is in Slurm and in the journal, so a killed placer continues where it was.
    SlurmError if Slurm does not answer; the next cycle tries again.
    """

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        journal: Journal,
        *,
        commands: SlurmCommands | None = None,
        settings: PlacerSettings | None = None,
        write_log: log.Log = log.nowhere,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Place jobs on the machines of `topology`, whose names are those of Slurm's nodes.

        journal: open for writing. commands: by default those of this host for the cluster that SLURM_CONF names. clock:
        returns the seconds since 1970, and may be set back. monotonic: returns seconds for durations, and is never set
        back. SlurmError if Slurm does not have these nodes with a type per device.
        """
        self._topology = topology
        self._journal = journal
        self._commands = commands or SlurmCommands()
        self._settings = settings or PlacerSettings()
        self._log = write_log
        self._clock = clock
        self._monotonic = monotonic
        self._nodes: SlurmNodes | None = None
        self._nodes_at = 0.0
        self._nodes_read = -math.inf
        self._released_at: dict[str, float] = {}
        self._chosen: dict[int, Mapping[str, Sequence[int]]] = {}
        self.cluster = Cluster(topology)
        self.figures = Figures()
        for node in check_nodes(topology, nodes.listed(self._commands)):
            self._log("node_missing", node=node)
        journal.set_topology(topology.digest())
        self._deciding = Deciding(
            policy,
            self.cluster,
            journal,
            self._settings,
            self.figures,
            write_log,
            _keeps_old(self._commands),
            monotonic,
        )

    def cycle(self) -> None:
        """Read, decide and give orders once; then read again, and release the jobs whose orders Slurm has accepted."""
        decided = self.figures.decided
        now = self._clock()
        listed = jobs.listed(self._commands)
        present = self._present()
        truth = self._synchronised(listed, present, now)
        recalled = {job.job_id for job in self._recalled(truth, listed, present, now)}
        starting = [job for job in listed if job.job_id in truth.starting and job.job_id not in recalled]
        waiting = [job for job in listed if job.waits_for_us and job.job_id not in truth.starting]
        self._deciding.requests.read(self._commands, waiting)
        taking = [*starting, *self._just_started(listed)]
        lines = self._deciding.orders_for(waiting, taking, jobs.main_ids(listed), present, now)
        self._commands.change([*(orders.hold(job_id) for job_id in recalled), *lines])
        self.figures.waiting = len(waiting)
        self.figures.cycles += 1
        if self.figures.cycles % _PRUNE_CYCLES == 0:
            self._journal.prune(before=now - _KEPT_S)
        if self.figures.decided > decided or any(job.is_held for job in starting):
            self._release()

    def _release(self) -> None:
        """Let jobs start that have their orders; not on nodes that slurmctld has yet to meet."""
        listed = jobs.listed(self._commands)
        starting = truth_of(listed, self._topology, self._chosen, self._journal.latest()).starting
        registered = nodes.registered(self._commands)
        self._commands.change(
            [
                orders.release(job.job_id)
                for job in listed
                if job.is_held
                and job.job_id in starting
                and registered.issuperset(node_names(job.required_nodes))
            ]
        )

    def _just_started(self, listed: Sequence[SlurmJob]) -> list[SlurmJob]:
        """Return the jobs that hold CPUs since the nodes were read."""
        return [job for job in listed if job.runs and job.started >= self._nodes_at - _CLOCK_S]

    def _present(self) -> SlurmNodes:
        """Return the nodes, which are read less often than the jobs."""
        now = self._monotonic()
        if self._nodes is None or now - self._nodes_read >= _NODES_CYCLES * self._settings.interval:
            self._nodes_at, self._nodes_read = self._clock(), now
            self._nodes = nodes.listed(self._commands)
        return self._nodes

    # ---- what Slurm has ------------------------------------------------------------------------------------

    def _synchronised(self, listed: Sequence[SlurmJob], present: SlurmNodes, now: float) -> Truth:
        """Bring cluster and journal in step with Slurm, and return what it has."""
        self._drain(present)
        numbers = {job.number for job in listed if job.runs}
        for number in self._chosen.keys() - numbers:
            del self._chosen[number]
        if unknown := unknown_devices(listed, self._chosen):
            found = devices.of_jobs(self._commands, unknown)
            self._chosen.update({number: found.get(number, {}) for number in unknown})
        self._note_withdrawn(listed, now)
        latest = self._journal.latest()
        truth = truth_of(listed, self._topology, self._chosen, latest)
        self.figures.confirmed += sum(
            job_id in latest and latest[job_id].stage.in_flight for job_id in truth.running
        )
        graphs = self._deciding.graphs
        differences = reconcile(
            self.cluster, truth.running, self._journal, pending=truth.starting, graphs=graphs
        )
        decided = {job.job_id for job in listed if job.is_ours and job.devices is not None}
        for one in differences:
            if one.kind == "unknown" and one.job_id not in decided:
                continue  # Slurm chose for it
            self.figures.differences[one.kind] += 1
            self._log("difference", job=one.job_id, kind=one.kind, journal=one.journal, slurm=one.scheduler)
        self.figures.fragmentation = self._fragmentation()
        return truth

    def _note_withdrawn(self, listed: Sequence[SlurmJob], now: float) -> None:
        """Withdraw the decisions for jobs that have left the queue before they started, or that never will start."""
        alive = {job.job_id for job in listed if not never_starts(job)}
        gone = [job_id for job_id in self._journal.in_flight() if job_id not in alive]
        self._journal.append(
            *(
                Entry(job_id, Stage.WITHDRAWN, (), "it has left the queue, or never starts", now)
                for job_id in gone
            )
        )

    def _drain(self, present: SlurmNodes) -> None:
        """Drain the machines on which Slurm starts nothing."""
        drained = set(self.cluster.drained_gpus())
        for node, gpus in self._topology.gpus_of.items():
            usable = node in present.nodes and present.nodes[node].usable
            if usable and not drained.isdisjoint(gpus):
                self.cluster.undrain(node)
                self._log("node_usable", node=node)
            elif not usable and not drained.issuperset(gpus):
                self.cluster.drain(node)
                self._log("node_unusable", node=node)

    def _fragmentation(self) -> float:
        free = set(self.cluster.free_gpus())
        return fragmentation(
            self._topology, [gpu for gpu in range(self._topology.num_gpus) if gpu not in free]
        )

    # ---- jobs that must be decided again ---------------------------------------------------------------------

    def _recalled(
        self, truth: Truth, listed: Sequence[SlurmJob], present: SlurmNodes, now: float
    ) -> list[SlurmJob]:
        """Return the jobs to hold again, and withdraw the decisions about them."""
        found: dict[str, SlurmJob] = {job.job_id: job for job in truth.stranded}
        why = dict.fromkeys(found, "it cannot start where it was ordered to")
        late = self._late([job.job_id for job in listed if job.job_id in truth.starting and not job.is_held])
        for job in listed:
            if job.job_id not in truth.starting:
                continue
            if not all(
                node in present.nodes and present.nodes[node].usable
                for node in node_names(job.required_nodes)
            ):
                found[job.job_id], why[job.job_id] = job, "its node is not usable any more"
            elif job.job_id in late:
                found[job.job_id], why[job.job_id] = job, f"it did not start: {job.reason}"
        entries: list[Entry] = []
        for job_id, job in found.items():
            entries.append(Entry(job_id, Stage.WITHDRAWN, (), why[job_id], now))
            self._deciding.set_back(job_id)
            self._log("recalled", job=job_id, reason=why[job_id], slurm=job.reason)
            if job_id in truth.starting:
                self.cluster.release(job_id)
        self._journal.append(*entries)
        self.figures.recalled += len(found)
        return list(found.values())

    def _late(self, released: Sequence[str]) -> frozenset[str]:
        """Return those of the released jobs that have not started for too long, since they were first seen so."""
        now = self._monotonic()
        self._released_at = {job_id: self._released_at.get(job_id, now) for job_id in released}
        return frozenset(
            job_id for job_id, since in self._released_at.items() if now - since > self._settings.grace
        )


def _keeps_old(commands: SlurmCommands) -> bool:
    """Return True if this version of Slurm goes on to ask for GPUs that an update has removed from a job.

    Slurm corrected this in 23.02.6.
    """
    return commands.version < (23, 2, 6)
