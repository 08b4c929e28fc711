"""The numbers of GPUs among the devices of their machines."""

from __future__ import annotations

import re

from topoplace.topology.makers import gpus_by_maker
from topoplace.topology.topology import Topology

_NUMBERED = re.compile(r"(?:GPU|nvidia)([0-9]{1,6})")


def device_numbers(topology: Topology) -> tuple[int, ...]:
    """Return each GPU's number among the devices of its machine, which tools and CUDA_VISIBLE_DEVICES use.

    It is the number in names such as GPU6, also where a GPU between is missing; the place on the machine if names are
    of another form, repeat numbers, or may count GPUs of several machines.
    """
    found = list(topology.local_index)
    if topology.num_machines > 1 and topology.fabric is None:
        return tuple(found)
    for gpus in topology.gpus_of.values():
        matches = [_NUMBERED.fullmatch(topology.gpus[gpu].name) for gpu in gpus]
        numbers = {int(match[1]) for match in matches if match}
        if len(numbers) == len(gpus):
            for gpu, match in zip(gpus, matches, strict=True):
                found[gpu] = int(match[1]) if match else found[gpu]
    return tuple(found)


def visible_numbers(topology: Topology) -> tuple[int, ...]:
    """Return each GPU's number by which a process sees it: on a machine of several makers, among those of its own.

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
