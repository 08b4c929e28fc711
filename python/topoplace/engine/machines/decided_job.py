"""A job that was decided before: where it goes follows from the condition of the best machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.engine.machines.machine_conditions import ConditionMemo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machines.machine_options import Choice, MachineOptions
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


class DecidedJob:
    """Places a job of whole GPUs or shares, without CPUs and memory, on the best machine.

    Machines in one condition get the same placement on other GPUs, so that it is made once.
    """

    def __init__(
        self,
        job: JobGraph,
        options: MachineOptions,
        cluster: Cluster,
        gpus_of: Sequence[tuple[int, ...]],
        place: Callable[[int, Choice], Placement | None],
    ) -> None:
        """Store the arguments.

        options: those of the job on the machines of the cluster. gpus_of: the GPUs of each machine. place: returns the
        placement by an option on a machine; None if more than this option must be compared.
        """
        self.job = job  # held, so that no other gets its id
        self._options, self._cluster, self._gpus_of = options, cluster, gpus_of
        native = options.conditions.native

        def first(condition: int) -> tuple[tuple[int, ...], Placement | None]:
            choice, machines = options.choice_in(condition), native.machines(condition)
            # Another thread may have changed the last of them.
            return choice.option.gpus, place(machines[0], choice) if machines else None

        self._placed = ConditionMemo(native, first)

    def placement(self) -> Placement | None:
        """Return the placement on the best machine; None if that is not known."""
        best = self._options.known_best()
        if best is None or self._cluster.sliced_gpus:
            return None
        machine, condition = best
        local, placed = self._placed.of(condition)
        if placed is None:
            return None
        numbers = self._gpus_of[machine]
        return placed.on_gpus(tuple([numbers[gpu] for gpu in local]))
