"""The numbers of GPUs among the devices of their machines, and texts that name GPUs by these numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from topoplace.topology.devices import UNNAMED
from topoplace.topology.makers import gpus_by_maker
from topoplace.topology.topology import Topology

MOST_NAMED: Final = 8
"""Limit on the GPUs that an answer names if many share something, such as a switch."""
_NUMBERED: Final = re.compile(r"(?:GPU|nvidia)([0-9]{1,6})")


def device_numbers(topology: Topology) -> tuple[int, ...]:
    """Return each GPU's number among the devices of its machine, which tools and CUDA_VISIBLE_DEVICES use.

    The number is that in names such as GPU6, even if other GPUs are missing. It is the position on the machine if names
    have another form, repeat numbers, or may count GPUs of several machines.
    """
    if topology.num_machines > 1 and topology.fabric is None:
        return topology.local_index
    of_template = [_numbers_in(machine) for machine in topology.templates]
    return tuple(number for template in topology.template_of for number in of_template[template])


def _numbers_in(machine: Topology) -> Sequence[int]:
    """Return the number of each GPU of one machine."""
    matches = [_NUMBERED.fullmatch(gpu.name) for gpu in machine.gpus]
    numbers = [int(match[1]) for match in matches if match]
    return numbers if len(set(numbers)) == machine.num_gpus else machine.local_index


def in_words(gpus: Sequence[int], topology: Topology, most: int | None = None) -> str:
    """Return GPUs as text, in the given order: "n3 0–3; n4 0", or "GPUs 2, 3" on a machine without a name.

    Args:
        gpus: Their ids.
        topology: The topology of the GPUs.
        most: Limit on the named GPUs; "..." stands for the others. None means no limit.
    """
    numbers, named = topology.derived(device_numbers), gpus[:most]
    more = ", ..." if len(named) < len(gpus) else ""
    if topology.machine_names == (UNNAMED,):
        return f"GPU{'s' * (len(gpus) > 1)} {', '.join(str(numbers[gpu]) for gpu in named)}{more}"
    machines = groupby(named, key=lambda gpu: topology.gpus[gpu].machine)
    return "; ".join(f"{name} {runs([numbers[gpu] for gpu in own], '–')}" for name, own in machines) + more


def runs(numbers: Iterable[int], to: str = "-") -> str:
    """Return numbers as text, in the given order, with ascending runs of three or more as ranges: "6,0-5,7"."""
    keyed = enumerate(numbers)
    found = [[number for _, number in run] for _, run in groupby(keyed, key=lambda pair: pair[1] - pair[0])]
    return ",".join(",".join(map(str, run)) if len(run) < 3 else f"{run[0]}{to}{run[-1]}" for run in found)


def visible_numbers(topology: Topology) -> tuple[int, ...]:
    """Return the number by which a process sees each GPU: its number among the GPUs of its maker on its machine.

    The driver of a maker counts only its own devices, and so do variables such as ROCR_VISIBLE_DEVICES.
    """
    found = list(topology.derived(device_numbers))
    by_maker = topology.derived(gpus_by_maker).values()
    for gpus in topology.gpus_of.values() if by_maker else ():
        own = [sorted(its.intersection(gpus)) for its in by_maker]
        if sum(map(bool, own)) > 1:
            for its in own:
                for number, gpu in enumerate(its):
                    found[gpu] = number
    return tuple(found)
