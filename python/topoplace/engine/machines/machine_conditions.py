"""Conditions of machines: machines of one class with equal free GPUs, and with equal jobs for rules that see jobs.

A rule answers once for each condition; its answers are ranked natively.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from topoplace._core import MachineConditions, MachineRanking
from topoplace.cluster.job_data import kind_of
from topoplace.mig import PresentSlice

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machines.machine_class import MachineClass, MachineClasses, Mask

Answer = TypeVar("Answer")
_MIN_KEPT = 256
"""Limit on conditions without machines whose answers are kept, in addition to the number of conditions with machines.
"""


class Neighbour(NamedTuple):
    """The properties of a running job that determine its interference with other jobs on the same machine."""

    profile: str
    """The name of the job's performance profile; "" if it is unknown."""
    num_tasks: int
    sockets: Mask
    """The sockets of this machine on which the job holds GPUs, as a bit mask of socket numbers."""
    gpu_fraction: float = 1.0
    """The job's share of each of its GPUs."""


class MachineState(NamedTuple):
    """The free GPUs of one machine, and what a rule sees of the jobs on it.

    Policies treat machines of equal class and state alike, but also compare their CPUs and memory.
    """

    free: Mask
    neighbours: tuple[Neighbour, ...]
    memory_bandwidth: float
    """GB/s of host memory bandwidth that the jobs on the machine use."""
    is_used: bool = False
    """True if a job holds a GPU of the machine or runs a process on it, as far as the rule sees these."""
    left: tuple[int, ...] = ()
    """Thousandths of each GPU that a new job can get, by local number; () unless the rule sees shares."""
    millicpus: int = 0
    """Free thousandths of CPUs; 0 unless the rule sees CPUs."""
    slices: tuple[tuple[int, PresentSlice], ...] = ()
    """The MIG slices of the machine's GPUs, each with the local number of its GPU; () unless the rule sees shares."""


class Sight(NamedTuple):
    """The properties by which a rule distinguishes machines with equal hardware and equal free GPUs."""

    jobs: bool = False
    """True if the rule sees the jobs on a machine: their profiles, sizes and sockets."""
    gpu_use: bool = False
    """True if the rule sees whether a job holds a GPU of the machine."""
    processes: bool = False
    """True if the rule sees whether a job runs a process on the machine."""
    shares: bool = False
    """True if the rule sees the free share of each GPU, and its slices."""
    cpus: bool = False
    """True if the rule sees the number of free CPUs."""


class ConditionMemo(Generic[Answer]):
    """An answer for each condition of machines, computed on first use."""

    def __init__(self, native: MachineConditions, rule: Callable[[int], Answer]) -> None:
        """Start without answers. rule: returns the answer for a condition, by its number; never None."""
        self.native = native
        self._rule = rule
        self._answers: dict[int, Answer] = {}
        self._generation: int | None = None
        self._most_kept = _MIN_KEPT

    def of(self, condition: int) -> Answer:
        """Return the answer for machines in a condition."""
        if self._generation != self.native.generation:
            self._answers.clear()
            self._generation = self.native.generation
        answer = self._answers.get(condition)
        if answer is None:
            answer = self._answers[condition] = self._rule(condition)
            if len(self._answers) > self._most_kept:
                self._forget()
        return answer

    def of_all(self, conditions: Sequence[int]) -> list[Answer]:
        """Return the answers for machines in these conditions."""
        if self._generation == self.native.generation:
            known = list(map(self._answers.get, conditions))
            if None not in known:
                return known  # type: ignore[return-value]
        return [self.of(condition) for condition in conditions]

    def of_machine(self, machine: int) -> Answer:
        """Return the answer for machine number `machine`."""
        return self.of(self.native.condition_of(machine))

    def _forget(self) -> None:
        """Drop the answers for conditions without machines."""
        present = set(self.native.present())
        self._answers = {one: answer for one, answer in self._answers.items() if one in present}
        self._most_kept = 2 * len(present) + _MIN_KEPT


class Conditions:
    """The conditions of a cluster's machines, by number, with the class and state that a rule sees of each."""

    def __init__(self, cluster: Cluster, classes: MachineClasses, sight: Sight) -> None:
        """Follow the state of a cluster."""
        self.native = MachineConditions(
            cluster.native,
            gpus_of=classes.gpus_of,
            template_of=classes.class_of,
            socket_of=[one.socket_of for one in classes.classes],
            sees_jobs=sight.jobs,
            sees_gpu_use=sight.gpu_use,
            sees_processes=sight.processes,
            sees_shares=sight.shares,
            sees_cpus=sight.cpus,
            shared=cluster.classes,
        )
        self._classes = classes.classes
        self._known = ConditionMemo(self.native, self._described)
        self.of = self._known.of
        """Returns the class and the state of the machines in a condition."""

    def states(self, conditions: Iterable[int]) -> list[MachineState]:
        """Return the states of the machines in each of these conditions."""
        return [self.of(condition)[1] for condition in conditions]

    def of_machine(self, machine: int) -> tuple[MachineClass, MachineState]:
        """Return the class and the state of machine number `machine`."""
        return self.of(self.native.condition_of(machine))

    def _described(self, condition: int) -> tuple[MachineClass, MachineState]:
        machine_class, free, jobs, is_used, left, millicpus, sliced = self.native.describe(condition)
        neighbours: list[Neighbour] = []
        bandwidths: list[float] = []
        for number, num_gpus, sockets in jobs:
            kind = kind_of(number)
            size = kind.num_tasks or num_gpus
            neighbours.append(Neighbour(kind.profile, size, sockets, kind.gpu_fraction))
            bandwidths.append(kind.memory_bandwidth * num_gpus / size)
        bandwidth = math.fsum(bandwidths)  # in any order: jobs are in that of their numbers
        slices = tuple([(gpu, PresentSlice(parts, compute, held)) for gpu, parts, compute, held in sliced])
        state = MachineState(free, tuple(sorted(neighbours)), bandwidth, is_used, left, millicpus, slices)
        return self._classes[machine_class], state


class ConditionTable(ConditionMemo[Answer]):
    """A rule's answer for each condition of machines, computed from their class and state."""

    def __init__(self, conditions: Conditions, rule: Callable[[MachineClass, MachineState], Answer]) -> None:
        """Start without answers. rule: returns the answer for a machine of the given class and state."""
        super().__init__(conditions.native, lambda condition: rule(*conditions.of(condition)))


def set_keys(ranking: MachineRanking, key_of: Callable[[int], tuple[float, ...] | None]) -> None:
    """Set the keys that a ranking lacks. key_of: returns the sort key of a condition; None leaves its machines out."""
    for condition in ranking.unknown():
        ranking.set(condition, key_of(condition))


class RankedMachines(Generic[Answer]):
    """The machines of a cluster in the order of a key of the rule's answers, ties by machine number."""

    def __init__(
        self, table: ConditionTable[Answer], key: Callable[[Answer], tuple[float, ...] | None]
    ) -> None:
        """Store the arguments. key: returns the sort key of machines with an answer; None leaves them out."""
        self._table = table
        self._key = key
        self.ranking = MachineRanking(table.native)
        """The machines in conditions for which the rule has an answer."""

    def now(self) -> MachineRanking:
        """Return the native ranking of the machines in their present conditions."""
        set_keys(self.ranking, lambda condition: self._key(self._table.of(condition)))
        return self.ranking
