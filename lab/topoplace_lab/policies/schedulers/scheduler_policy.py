"""Base class of policies that choose machines like a scheduler in use: the number of tasks on each one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from topoplace.cluster.hosts import megabytes, millicpus
from topoplace.engine.admission import MAX_SEARCHED_GPUS
from topoplace.engine.gangs.packing import DomainTree
from topoplace.engine.gangs.splits import in_order
from topoplace.engine.level_chain import LevelChains, named_levels
from topoplace.engine.machine_policy import Evaluation, MachinePolicy, placed_on
from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_options import Option
from topoplace.engine.requirements import NOT_HONOURED, refused
from topoplace.jobs.groups import MACHINE, SOCKET, Group
from topoplace.objectives.links import job_link_scores
from topoplace.objectives.pair_links import job_communication_cost
from topoplace.placement import Refusal
from topoplace_lab.policies.schedulers.levels import Levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement

    Ints = NDArray[np.int64]

Share = tuple[int, int]
"""(machine, number of tasks); the machine is the number of its domain at the last depth."""


class Asked(NamedTuple):
    """A job's demands on a scheduler."""

    size: int
    within: tuple[str, ...]
    """The levels that must have the whole job in one domain."""
    prefer: tuple[str, ...]
    """The levels that should have the whole job in one domain."""
    groups: tuple[Group, ...]
    """The groups that are smaller than the job."""
    pods: tuple[tuple[int, ...], ...]
    """The tasks of each pod, or of each node of Slurm: groups of equal size, each on one machine; () if none."""
    parts: tuple[Group, ...]
    """The groups that are not pods."""

    @property
    def per_pod(self) -> int:
        """Return the number of tasks that must be together on one machine."""
        return self.size if MACHINE in self.within else len(self.pods[0]) if self.pods else 1

    def in_pods(self, tasks: Sequence[int]) -> Sequence[int]:
        """Return the tasks, pod after pod."""
        if not self.pods:
            return tasks
        inside = set(tasks)
        return [task for pod in self.pods if pod[0] in inside for task in pod]


def asked_by(job: JobGraph) -> Asked:
    """Return a job's demands; a group of all its tasks counts like the job's own `within` and `prefer`."""
    whole = [group for group in job.groups if len(group.tasks) == job.num_tasks]
    within = (MACHINE if job.single_machine else None, job.within, *(group.within for group in whole))
    prefer = (job.prefer, *(group.prefer for group in whole))
    parts = [group for group in job.groups if len(group.tasks) < job.num_tasks]
    if MACHINE in within:  # which has all groups but those of its sockets
        parts = [group for group in parts if SOCKET in (group.within, group.prefer)]
    pods = _pods(parts, job.num_tasks)
    others = [group for group in parts if not _is_met_by_pods(group, pods)]
    levels = tuple(filter(None, within)), tuple(filter(None, prefer))
    return Asked(job.num_tasks, *levels, tuple(parts), pods, tuple(others))


def _pods(groups: Sequence[Group], num_tasks: int) -> tuple[tuple[int, ...], ...]:
    """Return the groups of machines, if these are equal parts of all tasks; () if they are not."""
    pods = sorted(group.tasks for group in groups if group.within == MACHINE and group.prefer is None)
    are_equal = len(set(map(len, pods))) == 1
    tasks = sorted(task for pod in pods for task in pod)
    return tuple(pods) if are_equal and tasks == list(range(num_tasks)) else ()


def _is_met_by_pods(group: Group, pods: Sequence[Sequence[int]]) -> bool:
    """Return True for a pod, and for a group inside one that may be anywhere on its machine."""
    is_anywhere = SOCKET not in (group.within, group.prefer)
    return is_anywhere and any(set(group.tasks) <= set(pod) for pod in pods)


class SchedulerPolicy(MachinePolicy):
    """Base of the rules of schedulers: they choose machines, and each machine gives its lowest free GPUs.

    The tasks are placed in the order of the machines, top down by domain. The rule sees machines whose GPUs can be
    taken one by one. In three cases, the engine decides instead, and takes the lowest machine. These are fixed
    partitions of GPUs, jobs with parts of GPUs, and communicating tasks without a path between the rule's GPUs.
    """

    sees_jobs = False
    splits_over_any_room = False

    @abstractmethod
    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Iterable[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait.

        Each inner sequence is for the tasks of one of `groups_of`, in that order, or a single one for the whole job.
        """

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return a requirement, and what the original has in place of its value; None if it has all."""
        return None

    def groups_of(self, asked: Asked) -> Sequence[Sequence[int]]:
        """Return the tasks in the order of placement, in one list or in one for each group."""
        return [asked.in_pods(range(asked.size))]

    def order(self, machine_class: MachineClass, state: MachineState, free: Mask) -> tuple[float, ...]:
        """Return the sort key of a machine that has room for the whole job; smaller is better."""
        return ()

    # ---- what the driver asks ------------------------------------------------------------------------------

    @cached_property
    def all_honoured(self) -> frozenset[str]:
        """Return the requirements that the policy honours: those of the original, and parts of GPUs."""
        return self.honours | {"gpu_fraction", "mig"}

    def refusal_of(self, job: JobGraph, cluster: Cluster) -> Refusal | None:
        """Return the refusal of the first requirement that the engine or the original cannot honour."""
        if not job.requirements:
            return None
        if refusal := super().refusal_of(job, cluster):
            return refusal
        found = self.lacks(asked_by(job), job, cluster) if _is_tree(job, cluster) else ("groups", _CROSSING)
        if found is None:
            return None
        name, lack = found[0], f"{self.name} {found[1]}"
        name = name if name in job.requirements else "groups"
        if name == "groups":
            return Refusal(f"groups {NOT_HONOURED}: {lack}", permanent=True)
        return refused(job, name, lack)

    def ranked_machines(self, job: JobGraph, cluster: Cluster) -> Iterator[list[int]]:
        """Yield the machines on which the whole job fits: that of the rule first, then by `order`."""
        placement = self.place(job, cluster) if job.num_tasks else None
        if placement and len(set(cluster.topology.machine_of[list(placement.gpus)].tolist())) > 1:
            placement = None
            if not job.anti_affinity:
                alone = job.with_(single_machine=True, within=None, prefer=None, groups=())
                placement = self.place(alone, cluster)
        first = int(cluster.topology.machine_of[placement.gpus[0]]) if placement else -1
        if placement:
            yield [first]
        for machines in super().ranked_machines(job, cluster):
            if others := [machine for machine in machines if machine != first]:
                yield others

    # ---- what MachinePolicy asks ---------------------------------------------------------------------------

    def choose(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the rule's placement, or the engine's where the rule does not see the GPUs or their links."""
        if request.takes_parts or view.cluster.topology.partitions:
            return super().choose(job, request, view, least_utility)
        for limit in request.memory_limits:
            offers = self._offers(request, view, limit)
            gpus = self._gpus(request, offers, view) if len(offers) else None
            if gpus is None:
                continue
            if job_communication_cost(job, gpus, view.cluster.topology) == math.inf:
                return super().choose(job, request, view, least_utility)
            links = job_link_scores(job, gpus, view.cluster.topology)
            return placed_on(job, tuple(gpus), view.cluster, links)
        return None

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return a number above any machine's GPUs: rules compare what machines have, not what a job needs."""
        return MAX_SEARCHED_GPUS

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterator[Option]:
        """Yield the lowest GPUs of a machine, or others if communicating tasks have no path between them."""
        for region in request.regions(machine_class, free):
            gpus = tuple(members(region))[: request.size]
            if request.communication(machine_class, gpus) == math.inf:
                gpus = request.mapped(machine_class, region)
            if request.communication(machine_class, gpus) < math.inf:
                yield Option(self.order(machine_class, state, free), gpus, 0.0, None)

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return one split of the job over the first machines with free GPUs, or none."""
        return in_order(offers, request.size, anti_affine=request.job.anti_affinity)

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return no utility; None if tasks that communicate have no path between their GPUs."""
        cost = job_communication_cost(request.job, gpus, view.cluster.topology)
        return Evaluation(0.0, None) if cost < math.inf else None

    def scores(self, details: Any) -> Mapping[str, float]:
        """Return no further scores."""
        return {}

    # ---- inside --------------------------------------------------------------------------------------------

    def _gpus(self, request: JobRequest, offers: Offers, view: ClusterView) -> list[int] | None:
        """Return the GPU of each task by the rule; None if the job has to wait."""
        asked = asked_by(request.job)
        tree = DomainTree(request, offers, view)
        levels = Levels(tree)
        if request.needs_hosts:
            levels.room = np.where(
                levels.room < request.size, levels.room, self._hosted(request, offers, levels, view)
            )
        found = self.shares(asked, request, levels, view)
        if found is None:
            return None
        gpus, first = [-1] * request.size, tree.first_of(levels.last)
        left: dict[int, Iterator[int]] = {}
        for tasks, shares in zip(self.groups_of(asked), found, strict=True):
            at = iter(tasks)
            for leaf, count in sorted(shares):
                if leaf not in left:
                    machine, mask = tree.place(first + leaf)
                    left[leaf] = map(view.classes.gpus_of[machine].__getitem__, members(mask))
                for _ in range(count):
                    gpus[next(at)] = next(left[leaf])
        return gpus

    def _hosted(self, request: JobRequest, offers: Offers, levels: Levels, view: ClusterView) -> Ints:
        """Return for how many tasks such as the job's the machines have room, also for more than the job has."""
        job, free = request.job, view.cluster.hosts.free[levels.machines]
        room: Ints = offers.gpu_counts[np.searchsorted(offers.machines, levels.machines)]
        for column, need in enumerate((millicpus(job.cpus or 0), megabytes(job.memory_gb or 0.0))):
            if need:
                room = np.minimum(room, free[:, column] * request.size // need)
        return room


_CROSSING: Final = "knows levels of which each is inside the next"


def _is_tree(job: JobGraph, cluster: Cluster) -> bool:
    return cluster.topology.derived(LevelChains).of(named_levels(job)) is not None
