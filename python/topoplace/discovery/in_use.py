"""The use of GPUs that a tool's text states, and the GPUs of a topology that are therefore not free.

A GPU is free only if the text shows it free. A GPU is not free if it is in use, if no job can get it, or if the text
does not mention it. GPUs are matched by UUID if both sides have UUIDs, else by machine and number.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.device_numbers import device_numbers
from topoplace.topology.devices import UNNAMED, Gpu
from topoplace.topology.topology import Topology

_SHOWN = 16
"""Limit on the GPUs, or machines, that a message names."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The use of one GPU that a text states."""

    machine: str | None
    """The name of its machine; None if the text is about one machine without a name."""
    number: int | None
    """Its number on that machine. If None, its UUID or PCI address identifies it; without these, all GPUs of the
    machine are meant.
    """
    by_place: bool = False
    """True if the number is the position among the machine's GPUs, from 0, as in Slurm; False for a device number."""
    taken: bool = True
    """True if a job or a process uses it, or one of its slices."""
    fault: str = ""
    """The reason why an unused GPU is not free, such as "the driver has lost it"; "" for none."""
    is_told: bool = True
    """False if the text does not state whether it is in use."""
    uuid: str | None = None
    bus_id: str | None = None
    only_held: bool = False
    """True if the text omits free GPUs, as `squeue` does."""


def of_samples(samples: Sequence[Sequence[GpuUse]]) -> tuple[GpuUse, ...]:
    """Return the use of the GPUs of one machine by all samples in a text, and warn if samples differ.

    Raise TopologyError if a number has another UUID or PCI address in another sample: the samples are then of several
    machines.
    """
    identity: dict[int | None, tuple[str | None, str | None]] = {}
    for one in (one for sample in samples for one in sample if one.number is not None):
        if identity.setdefault(one.number, (one.uuid, one.bus_id)) != (one.uuid, one.bus_id):
            raise TopologyError(
                f"the text has {len(samples)} outputs of the tool, in which GPU {one.number} is not the same; "
                "give each machine its own text"
            )
    not_free = {
        frozenset((one.number, one.uuid) for one in sample if one.taken or one.fault) for sample in samples
    }
    if len(not_free) > 1:
        warnings.warn(
            f"the text has {len(samples)} outputs of the tool; a GPU that is not free in one of them is not free",
            stacklevel=5,
        )
    return tuple(one for sample in samples for one in sample)


def gpus(found: Iterable[GpuUse], topology: Topology) -> tuple[int, ...]:
    """Return the GPUs of `topology` that are not free, ascending, by the uses in `found`.

    GPUs that are unhealthy in `topology` are left out unless they are in use. A UserWarning names GPUs that are neither
    in use nor free, and machines and GPUs in use that the topology does not have. Machines are the same if their names
    are equal, or equal up to the first dot. Raise TopologyError for a GPU that a machine does not have, and if no
    machine or UUID is in the topology.
    """
    found = tuple(found)
    if not found:
        return ()
    said = _said(found, topology)
    taken = {gpu for gpu, uses in said.items() if any(one.taken for one in uses)}
    reasons = {gpu: fault for gpu, uses in said.items() if (fault := next(_faults(uses), ""))}
    if not any(one.only_held for one in found):
        silent = "the text says nothing of it"
        reasons |= {gpu: silent for gpu in range(topology.num_gpus) if gpu not in said}
    reasons = {gpu: why for gpu, why in reasons.items() if gpu not in taken and topology.gpus[gpu].healthy}
    if reasons:
        warnings.warn(f"not shown in use, and not free: {_reasons(reasons, topology)}", stacklevel=3)
    return tuple(sorted(taken | reasons.keys()))


# ---- which GPUs ------------------------------------------------------------------------------------------------


def _said(found: Sequence[GpuUse], topology: Topology) -> dict[int, list[GpuUse]]:
    """Return what the text says of each GPU of the topology that it is about."""
    tells_uuids = any(one.uuid is not None for one in found)
    gpus = enumerate(topology.gpus if tells_uuids else ())
    of_uuid = {gpu.uuid: index for index, gpu in gpus if gpu.uuid is not None}
    said: dict[int, list[GpuUse]] = {}
    others: list[GpuUse] = []
    for one in found:
        if one.uuid in of_uuid:
            said.setdefault(of_uuid[one.uuid], []).append(one)
        else:
            others.append(one)
    if _all_have_uuids(topology):
        others = _without_strangers(others, is_known=bool(said))
    for gpu, one in _by_number(others, topology):
        said.setdefault(gpu, []).append(one)
    return said


def _all_have_uuids(topology: Topology) -> bool:
    return all(gpu.uuid is not None and gpu.parent is None for gpu in topology.gpus)


def _without_strangers(found: Sequence[GpuUse], *, is_known: bool) -> list[GpuUse]:
    """Return the entries without a UUID, where the topology lacks all UUIDs of `found`, and warn of the others.

    is_known: whether the topology has other GPUs of the text. Raises TopologyError if it has none.
    """
    uuids = [one.uuid for one in found if one.uuid is not None]
    if uuids and not is_known:
        raise TopologyError(f"the text is about other GPUs ({_checks.some(uuids)}) than the topology")
    if taken := [one.uuid for one in found if one.uuid is not None and one.taken]:
        named = _checks.some(taken)
        warnings.warn(f"GPUs in use that the topology does not have are left out: {named}", stacklevel=5)
    return [one for one in found if one.uuid is None]


def _by_number(found: Sequence[GpuUse], topology: Topology) -> Iterator[tuple[int, GpuUse]]:
    """Yield the GPUs that entries without a known UUID are about, each with its entry."""
    if not found:
        return
    same = _same_machines({one.machine for one in found}, topology)
    taken = (one.machine for one in found if one.machine not in same and one.taken)
    if elsewhere := [name for name in dict.fromkeys(taken) if name]:
        warnings.warn(
            f"GPUs in use on machines that the topology does not have are left out: {_checks.some(elsewhere)}",
            stacklevel=5,
        )
    known = _numbered(topology)
    for one in found:
        if (machine := same.get(one.machine)) is not None:
            yield from ((gpu, one) for gpu in _meant(one, machine, known, topology))


def _numbered(topology: Topology) -> dict[tuple[str, bool, int], list[int]]:
    """Return the GPUs by machine, whether the number is a place, and number; MIG slices have that of their GPU."""
    numbers = device_numbers(topology)
    known: dict[tuple[str, bool, int], list[int]] = {}
    for machine, own, described in _machines(topology):
        devices: dict[str, list[int]] = {}
        for gpu, device in zip(own, described, strict=True):
            devices.setdefault(device.parent or device.name, []).append(gpu)
        cut = any(device.parent for device in described)
        for place, of_device in enumerate(devices.values()):
            known[machine, True, place] = of_device
            known[machine, False, place if cut else numbers[of_device[0]]] = of_device
    return known


def _machines(topology: Topology) -> Iterator[tuple[str, Sequence[int], Sequence[Gpu]]]:
    """Yield each machine, its GPU numbers and its GPUs; in a cluster, the GPUs of its template, without UUIDs."""
    tiling = topology.tiling
    for number, (machine, own) in enumerate(topology.gpus_of.items()):
        described = [topology.gpus[gpu] for gpu in own] if tiling is None else tiling.template(number).gpus
        yield machine, own, described


def _meant(
    one: GpuUse, machine: str, known: dict[tuple[str, bool, int], list[int]], topology: Topology
) -> Sequence[int]:
    """Return the GPUs of a machine that an entry is about. TopologyError says that they cannot be found."""
    if one.number is not None:
        if (found := known.get((machine, one.by_place, one.number))) is None and one.taken:
            raise TopologyError(f"machine {_checks.shown(machine)} has no GPU {one.number}, which is in use")
        return found or ()
    own = topology.gpus_of[machine]
    if one.uuid is None and one.bus_id is None:
        return own
    at = [gpu for gpu in own if one.bus_id and topology.gpus[gpu].bus_id == one.bus_id]
    if not at and not one.fault:
        raise TopologyError(
            f"the text has some of the machine's GPUs, and which of the topology's {one.bus_id or one.uuid} is, is not "
            "known; give the complete output of the tool"
        )
    return at


def _same_machines(names: Collection[str | None], topology: Topology) -> dict[str | None, str]:
    """Return the machine of the topology by its name in a text; names of machines that it does not have are left out.

    A text about one machine is about that of a topology of one, unless both name theirs.
    """
    if (
        len(names) == 1
        and topology.num_machines == 1
        and (None in names or UNNAMED in topology.machine_names)
    ):
        return dict.fromkeys(names, topology.machine_names[0])
    if None in names:
        raise TopologyError(
            f"the text does not name its machine, and the topology has {topology.num_machines}"
        )
    same = _same_hosts([name for name in names if name is not None], topology)
    if names and not same:
        listed, have = _checks.some(sorted(map(str, names))), _checks.some(topology.machine_names)
        raise TopologyError(f"the text is about other machines ({listed}) than the topology ({have})")
    return same


def _same_hosts(named: Collection[str], topology: Topology) -> dict[str | None, str]:
    hosts = Counter(map(_host, (*named, *topology.machine_names)))
    machine_of = {name: name for name in topology.machine_names}
    by_host = {_host(name): name for name in topology.machine_names if hosts[_host(name)] == 2}
    found = {name: machine_of.get(name) or by_host.get(_host(name)) for name in named}
    return {name: machine for name, machine in found.items() if machine}


def _host(name: str) -> str:
    return name.partition(".")[0]


# ---- words -----------------------------------------------------------------------------------------------------


def _faults(uses: Sequence[GpuUse]) -> Iterator[str]:
    """Yield why a GPU is not free, though nothing may have it."""
    yield from (one.fault for one in uses if one.fault)
    if not any(one.is_told for one in uses):
        yield "the text does not state whether it is in use"


def _reasons(reasons: dict[int, str], topology: Topology) -> str:
    """Return GPUs by the reason why they are not free, in words."""
    of_reason: dict[str, list[int]] = {}
    for gpu, why in sorted(reasons.items()):
        of_reason.setdefault(why, []).append(gpu)
    return "; ".join(f"{_named(own, topology)}: {why}" for why, own in of_reason.items())


def _named(chosen: Sequence[int], topology: Topology) -> str:
    """Return GPUs by machine and the numbers of their devices, in words."""
    numbers = device_numbers(topology)
    several = topology.num_machines > 1
    of_machine: dict[str, list[int]] = {}
    for gpu in chosen:
        of_machine.setdefault(topology.gpus[gpu].machine, []).append(gpu)
    words: list[str] = []
    for machine, own in of_machine.items():
        whole = several and len(own) == len(topology.gpus_of[machine])
        listed = ", ".join(str(numbers[gpu]) for gpu in own[:_SHOWN])
        more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
        words.append(("all GPUs" if whole else f"GPU {listed}{more}") + (f" of {machine}" if several else ""))
    return ", ".join(words[:_SHOWN]) + (f" and of {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")
