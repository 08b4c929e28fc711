"""The numbers of machines that can serve a job now, and of those that cannot, by reason; they add up to all
machines."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.admission import tasks_per_machine
from topoplace.engine.machines.machine_conditions import Sight

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import Ints, Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest


class Standing(IntEnum):
    """Whether a machine can serve a job, and if not, why; every machine has exactly one standing."""

    SERVES = 0
    """The machine offers at least one GPU."""
    TAKEN = 1
    """No GPU of the machine that suits the job is free."""
    UNSUITED = 2
    """No GPU of the machine suits the job, by model or memory."""
    NO_HOST = 3
    """GPUs are free, but not the CPUs or memory of one task."""
    LIMITED = 4
    """GPUs are free, but in no whole partition, or without the memory bandwidth of one task."""


_WORDS = {
    Standing.TAKEN: "have none free",
    Standing.UNSUITED: "have no such GPU",
    Standing.NO_HOST: "lack CPUs or memory",
    Standing.LIMITED: "lack a free partition or memory bandwidth",
}


def standings(request: JobRequest, view: ClusterView, offers: Offers) -> Ints:
    """Return (m,) the `Standing` of each machine. offers: what the machines offer to the job now."""
    conditions = view.conditions(Sight(shares=request.takes_parts))
    of_condition: dict[int, Standing] = {}
    for number in conditions.native.present():
        machine_class, state = conditions.of(number)
        suits = request.suitable(machine_class)
        free = Standing.LIMITED if request.free_on(machine_class, state) & suits else Standing.TAKEN
        of_condition[number] = free if suits else Standing.UNSUITED
    table = np.zeros(max(of_condition, default=0) + 1, dtype=np.int64)
    table[list(of_condition)] = list(of_condition.values())
    found = table[conditions.native.of_machines()]
    hosted = tasks_per_machine(request.job, view.cluster.hosts)
    if hosted is not None:
        found[(found == Standing.LIMITED) & (hosted == 0)] = Standing.NO_HOST
    found[offers.machines] = Standing.SERVES
    return found


def counted(found: Ints, num_gpus: int, machines: str) -> str:
    """Return the numbers of machines by standing, as a sentence without its full stop; they add up to the length of
    `found`.

    num_gpus: the number of GPUs that the serving machines offer. machines: a name for the machines, such as "its
    machines".
    """
    numbers: list[int] = np.bincount(found, minlength=len(Standing)).tolist()
    parts = [f"{numbers[Standing.SERVES]} of {machines} have {num_gpus} GPUs for it"]
    parts += [f"{numbers[standing]} {words}" for standing, words in _WORDS.items() if numbers[standing]]
    return ", ".join(parts)
