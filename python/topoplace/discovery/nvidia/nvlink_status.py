"""Reader of the output of `nvidia-smi nvlink -s` and `nvidia-smi nvlink -R`, or of both in one text.

Below a line for each GPU, -s lists the state and rate of every NVLink, and -R the PCI device at its other end. The
rates are raw signal rates: 25.781 and 26.562 GB/s carry a payload of 25 GB/s, 53.125 carries 50. -s lacks the other
ends of links. -R lacks the links' speed and the PCI addresses of the GPUs themselves; see `parse` for the consequences.
The output of -p is read as that of -R.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.discovery.nvidia import gpu_line
from topoplace.discovery.nvidia.gpu_line import NamedGpu
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu
from topoplace.topology.links.link_kinds import (
    PCIE3_X16_GB_PER_S,
    Link,
    LinkKind,
    LinkSpeed,
    model_known,
    nvlink_of,
)
from topoplace.topology.topology import Topology

PAYLOAD_GB_PER_S: Mapping[str, float] = {
    "20": 20.0,
    "25": 25.0,
    "25.781": 25.0,
    "26.562": 25.0,
    "50": 50.0,
    "53.125": 50.0,
    "14.062": 14.0625,
}
"""Payload of a link in GB/s one direction, by the rate that -s prints for it."""

_STATUS = re.compile(
    r"\s*Link ([0-9]{1,3}): (?:([0-9]{1,4}(?:\.[0-9]{1,3})?) GB/s|<inactive>)\s*", re.IGNORECASE
)
_REMOTE = re.compile(
    r"\s*Link ([0-9]{1,3}): (?:Remote Device )?"
    r"(?:([0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9A-F])(?:: Link [0-9]{1,3})?|<inactive>)\s*",
    re.IGNORECASE,
)
_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_LINK = re.compile(r"\s*Link\b")
_COMMAND = re.compile(r"\bnvidia-smi\s+nvlink[\w\s-]*[`:]*\s*$")
# Below the line of a GPU, or behind it.
_NO_LINK = re.compile(
    r"(?:\s*GPU [0-9].{0,300}\))?\s*(?:NVML: Unable to retrieve NVLink information as all links are inactive"
    r"|Device does not have or support NVLink)\s*",
    re.IGNORECASE,
)
_MAX_LINK = 64
_UNKNOWN = LinkSpeed(LinkKind.NVLINK, None, None, "direct")


@dataclass(slots=True)
class GpuLinks:
    """The NVLinks of one GPU."""

    gpu: NamedGpu
    rates: dict[int, float | None] = field(default_factory=dict[int, float | None])
    """GB/s in one direction by link number, None for an inactive link; {} if the text has no output of -s."""
    remotes: dict[int, str] = field(default_factory=dict[int, str])
    """The bus id of the device at the other end, by link number; -R numbers only the active links."""

    @property
    def active(self) -> int:
        """Return the number of active links."""
        return max(sum(rate is not None for rate in self.rates.values()), len(self.remotes))


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi nvlink`.

    Such a text has a line about a GPU and, directly below or in that line, a link or a message that there are none.
    """
    last_was_gpu = False
    for number, line in decode.numbered_lines(text[:65536]):
        is_gpu = gpu_line.named_gpu(number, line) is not None
        if (is_gpu or last_was_gpu) and any(form.fullmatch(line) for form in (_STATUS, _REMOTE, _NO_LINK)):
            return True
        last_was_gpu = is_gpu
    return False


def read(data: str | bytes) -> tuple[GpuLinks, ...]:
    """Return the NVLinks of every GPU in `data`, in the order of the GPUs' numbers.

    Raise TopologyError naming the line, also for a shortened text, such as links 0 and 17 without those between.
    """
    found: dict[int, GpuLinks] = {}
    here: GpuLinks | None = None
    for number, line in decode.numbered_lines(decode.decoded(data, "the NVLinks")):
        gpu_line.refuse_elided(number, line)
        gpu = gpu_line.named_gpu(number, line)
        if gpu is not None:
            here = found.setdefault(gpu.number, GpuLinks(gpu))
            if (here.gpu.model, here.gpu.uuid) != (gpu.model, gpu.uuid):
                raise TopologyError(f"line {number}: {gpu.name} differs from the GPU in line {here.gpu.line}")
        elif _LINK.match(line):
            _read_link(number, line, here)
        else:
            gpu_line.refuse_cut_off(number, line)
        if len(found) > gpu_line.MAX_GPUS:
            raise TopologyError(f"line {number}: more than {gpu_line.MAX_GPUS} GPUs")
    if not found:
        raise TopologyError('no GPU: the text has no line like "GPU 0: NVIDIA H100 (UUID: GPU-5d5b...)"')
    for links in found.values():
        _check_numbers(links)
    return tuple(found[number] for number in sorted(found))


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    bus_ids: Collection[str] = (),
    lane_gb_per_s: float | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "nvidia-smi nvlink",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from the text of -R, of -s, or of both.

    Without -R, any pair of GPUs with active links has a link of kind `LinkKind.UNKNOWN`; but if only two GPUs have
    links, equally many, these lead from one to the other. Without `bus_ids`, the devices
    at the other ends are first assumed to be the GPUs, in the order of their PCI addresses. This assumption holds if no
    GPU has links to itself and each pair has equal numbers of links in both directions. Otherwise the devices are
    assumed to be NVSwitches. Then of two GPUs that share a switch, one must reach all switches of the other. A text
    that fits neither assumption is refused.

    gpu_model: the model of every GPU, instead of that in the text.
    bus_ids: the PCI addresses of the GPUs in the order of their numbers, which -R omits.
    lane_gb_per_s: GB/s of a link, instead of the rate printed by -s or else that of the model.
    pcie_gb_per_s: GB/s assumed for pairs without NVLink, and for pairs of unknown kind.
    Raise TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    lane_gb_per_s = (
        None if lane_gb_per_s is None else _checks.positive(lane_gb_per_s, "lane_gb_per_s", TopologyError)
    )
    gpu_model = None if gpu_model is None else _checks.text(gpu_model, "gpu_model", TopologyError)
    links = read(data)
    numbered = _numbered(links, bus_ids) if bus_ids else _inferred(links)
    speeds = [_speed(gpu, gpu_model, lane_gb_per_s) for gpu in links]
    leading = Counter(bus_id for gpu in links for bus_id in set(gpu.remotes.values()) - set(numbered))
    switches = sorted(bus_id for bus_id, gpus in leading.items() if gpus > 1)
    only = _only_pair(links, speeds)
    pairs = only or [*_pairs(links, numbered, speeds), *_unknown_pairs(links, pcie_gb_per_s)]
    gpus, repeated = gpu_line.with_distinct_uuids(
        [_described(i, gpu, gpu_model, machine) for i, gpu in enumerate(links)]
    )
    notes = [
        *_unknown_ends(links, speeds, [bus_id for bus_id in sorted(leading) if bus_id not in switches]),
        *_notes(links, inferred=bool(numbered) and not bus_ids),
        *_only_states(links, speeds, paired=bool(only)),
        f"The speed of PCIe is not given: {pcie_gb_per_s:g} GB/s is assumed.",
        *repeated,
        *_unread(data, links),
    ]
    return Topology(
        gpus,
        tuple(pairs),
        default=pcie_gb_per_s,
        name=name,
        components=tuple(Component(ComponentKind.NVSWITCH, f"NVSwitch {bus_id}") for bus_id in switches),
        component_links=tuple(_to_switches(links, switches, speeds)),
        notes=tuple(notes),
    )


# ---- lines -----------------------------------------------------------------------------------------------------


def _read_link(number: int, line: str, here: GpuLinks | None) -> None:
    status, remote = _STATUS.fullmatch(line), _REMOTE.fullmatch(line)
    match = status or remote
    if match is None:
        raise TopologyError(f"line {number}: {_checks.shown(line.strip())} is not a link")
    if here is None:
        raise TopologyError(f"line {number}: a link without a GPU above it")
    link = _checks.integer(int(match[1]), f"line {number}: link", TopologyError, low=0, high=_MAX_LINK - 1)
    to_device = status is None and match[2] is not None
    if link in (here.remotes if to_device else here.rates):
        raise TopologyError(f"line {number}: link {link} of {here.gpu.name} appears twice")
    if to_device:
        here.remotes[link] = _bus_id(match[2])
    else:
        here.rates[link] = _payload(number, match[2]) if match[2] else None


def _payload(number: int, rate: str) -> float:
    plain = rate.rstrip("0").rstrip(".") if "." in rate else rate
    if plain not in PAYLOAD_GB_PER_S:
        known = ", ".join(PAYLOAD_GB_PER_S)
        raise TopologyError(f"line {number}: the payload of a rate of {rate} GB/s is unknown; known: {known}")
    return PAYLOAD_GB_PER_S[plain]


def _bus_id(word: str) -> str:
    """Return a PCI address in lower case, its domain with at least four digits."""
    domain, _, rest = word.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _check_numbers(links: GpuLinks) -> None:
    """Refuse a gap in the link numbers of a GPU, and different numbers of active links in -s and -R."""
    where, name = f"line {links.gpu.line}", links.gpu.name
    active = sum(rate is not None for rate in links.rates.values())
    listed = (set(links.rates), set(links.remotes)) if active else ({*links.rates, *links.remotes},)
    for numbers in listed:
        last = max(numbers, default=-1)
        missing = min(set(range(last)) - numbers, default=None)
        if missing is not None:
            raise TopologyError(
                f"{where}: link {missing} of {name} is missing, although link {last} is listed; give the complete text"
            )
    if active and links.remotes and active != len(links.remotes):
        raise TopologyError(
            f"{where}: {active} links of {name} are active, but {len(links.remotes)} lead somewhere"
        )


def _unread(data: str | bytes, links: Sequence[GpuLinks]) -> Iterator[str]:
    """Yield a note on lines that are about neither a GPU nor a link."""
    lines = list(decode.numbered_lines(decode.decoded(data)))
    yield from filter(None, (gpu_line.lost_gpu(line) for _, line in lines))
    yield from gpu_line.missing_gpus(gpu.gpu.name for gpu in links)
    yield from unread.note(
        lines, lambda number, line: _is_read(number, line) or gpu_line.lost_gpu(line), _COMMAND
    )


def _is_read(number: int, line: str) -> object:
    return _LINK.match(line) or gpu_line.named_gpu(number, line) or _NO_LINK.fullmatch(line)


# ---- meaning ---------------------------------------------------------------------------------------------------


def _described(i: int, links: GpuLinks, model: str | None, machine: str) -> Gpu:
    named = model_known(links.gpu.model) or links.gpu.model
    return Gpu(i, links.gpu.name, model or named, machine, uuid=links.gpu.uuid)


def _speed(links: GpuLinks, model: str | None, lane_gb_per_s: float | None) -> LinkSpeed:
    """Return the kind and speed of the NVLinks of one GPU; if links differ in speed, that of the slowest."""
    known = nvlink_of(model or links.gpu.model) or _UNKNOWN
    rates = [rate for rate in links.rates.values() if rate is not None]
    gb_per_s = lane_gb_per_s or min(rates, default=known.gb_per_s)
    if not gb_per_s and links.remotes:
        of = _checks.shown(model or links.gpu.model)
        raise TopologyError(
            f"line {links.gpu.line}: the speed of the NVLinks of {of} is unknown; give lane_gb_per_s="
        )
    return LinkSpeed(known.kind, gb_per_s, None, "direct", _MAX_LINK)


def _numbered(links: Sequence[GpuLinks], bus_ids: Collection[str]) -> dict[str, int]:
    """Return the GPU number of each bus id in `bus_ids`; TopologyError unless there is one different id per GPU."""
    words = _checks.sequence(bus_ids, "bus_ids", TopologyError)
    numbered = {_checked_bus_id(word): i for i, word in enumerate(words)}
    if len(words) != len(links) or len(numbered) != len(links):
        raise TopologyError(
            f"bus_ids has {len(words)} entries, {len(numbered)} of them different, for {len(links)} GPUs"
        )
    return numbered


def _inferred(links: Sequence[GpuLinks]) -> dict[str, int]:
    """Return the GPU number by bus id if the devices at the other ends of links can be the GPUs; see `parse`.

    {} if the text names no such devices, or they can only be NVSwitches; TopologyError if they can be neither.
    """
    leading = [i for i, gpu in enumerate(links) if gpu.remotes]
    ends = sorted({bus_id for i in leading for bus_id in links[i].remotes.values()}, key=_address)
    if len(ends) == len(leading):
        guess = dict(zip(ends, leading, strict=True))
        if _is_both_ways(links, guess):
            return guess
    _refuse_non_switches([links[i] for i in leading])
    return {}


def _refuse_non_switches(links: Sequence[GpuLinks]) -> None:
    """Raise TopologyError if the devices at the other ends of links cannot be NVSwitches.

    Each GPU must share a switch with another GPU. Of two GPUs that share one, one must reach all switches that the
    other reaches; it may reach more, because links of the other may have failed.
    """
    ends = [set(gpu.remotes.values()) for gpu in links]
    for gpu, own in zip(links, ends, strict=True):
        shared = [other for other in ends if own & other]
        if len(links) > 1 and (len(shared) == 1 or not all(own <= other or other <= own for other in shared)):
            raise TopologyError(
                f"line {gpu.gpu.line}: the text does not show to which GPUs the links of {gpu.gpu.name} lead; "
                "give bus_ids="
            )


def _checked_bus_id(word: object) -> str:
    if not isinstance(word, str) or not _BUS_ID.fullmatch(word):
        raise TopologyError(f'bus_ids: {_checks.shown(word)} is not like "00000000:07:00.0"')
    return _bus_id(word)


def _address(bus_id: str) -> list[int]:
    return [int(part, 16) for part in re.split("[:.]", bus_id)]


def _lanes(links: Sequence[GpuLinks], numbered: Mapping[str, int]) -> Counter[tuple[int, int]]:
    """Return the number of links from GPU u to GPU v, by (u, v)."""
    return Counter(
        (i, numbered[bus_id])
        for i, gpu in enumerate(links)
        for bus_id in gpu.remotes.values()
        if bus_id in numbered
    )


def _is_both_ways(links: Sequence[GpuLinks], numbered: Mapping[str, int]) -> bool:
    lanes = _lanes(links, numbered)
    return all(u != v and lanes[v, u] == count for (u, v), count in lanes.copy().items())


def _pairs(
    links: Sequence[GpuLinks], numbered: Mapping[str, int], speeds: Sequence[LinkSpeed]
) -> Iterator[tuple[int, int, Link]]:
    lanes = _lanes(links, numbered)
    for (u, v), count in sorted(lanes.copy().items()):
        back = lanes[v, u]
        if u == v or back != count:
            first, second = links[u].gpu, links[v].gpu
            raise TopologyError(
                f"line {first.line}: {count} links from {first.name} to {second.name}, but {back} back"
            )
        if u < v:
            slower = min(speeds[u], speeds[v], key=lambda speed: speed.gb_per_s)
            yield u, v, Link(slower.kind, count, count * slower.gb_per_s)


def _only_pair(links: Sequence[GpuLinks], speeds: Sequence[LinkSpeed]) -> list[tuple[int, int, Link]]:
    """Return the link between the only two GPUs with active links, in a text without -R; [] if there are not two."""
    active = [i for i, gpu in enumerate(links) if gpu.active]
    if len(active) != 2 or any(gpu.remotes for gpu in links):
        return []
    u, v = active
    count, slower = links[u].active, min(speeds[u], speeds[v], key=lambda speed: speed.gb_per_s)
    return [(u, v, Link(slower.kind, count, count * slower.gb_per_s))] if count == links[v].active else []


def _unknown_pairs(links: Sequence[GpuLinks], pcie_gb_per_s: float) -> Iterator[tuple[int, int, Link]]:
    """Yield (u, v, link of kind UNKNOWN) for each pair of GPUs with active links, if the text has no output of -R."""
    if any(gpu.remotes for gpu in links):
        return
    active = [i for i, gpu in enumerate(links) if gpu.active]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    yield from ((u, v, unknown) for v in active for u in active if u < v)


def _to_switches(
    links: Sequence[GpuLinks], switches: Sequence[str], speeds: Sequence[LinkSpeed]
) -> Iterator[tuple[int, int, Link]]:
    vertex = {bus_id: len(links) + i for i, bus_id in enumerate(switches)}
    for i, gpu in enumerate(links):
        for bus_id, count in sorted(Counter(gpu.remotes.values()).items()):
            if bus_id in vertex:
                yield i, vertex[bus_id], Link(speeds[i].kind, count, count * speeds[i].gb_per_s)


def _unknown_ends(
    links: Sequence[GpuLinks], speeds: Sequence[LinkSpeed], ends: Sequence[str]
) -> Iterator[str]:
    for bus_id in ends:
        yield f"What {bus_id} is, with links to one GPU, is not known."
    for gpu, speed in zip(links, speeds, strict=True):
        for bus_id, count in sorted(Counter(gpu.remotes.values()).items()):
            if bus_id in ends:
                yield f"Left out: links from {gpu.gpu.name} to {bus_id}, {count} of {speed.gb_per_s:g} GB/s."


def _only_states(links: Sequence[GpuLinks], speeds: Sequence[LinkSpeed], *, paired: bool) -> Iterator[str]:
    """Yield notes on the number and speed of links whose ends a text without -R does not state."""
    if any(gpu.remotes for gpu in links):
        return
    alike: dict[tuple[int, float], list[str]] = {}
    for gpu, speed in zip(links, speeds, strict=True):
        if gpu.active:
            alike.setdefault((gpu.active, speed.gb_per_s), []).append(gpu.gpu.name)
    for (count, gb_per_s), names in alike.items():
        yield f"Active links of {', '.join(names)}: {count} of {gb_per_s:g} GB/s each."
    if paired:
        yield "No other GPU has links, so these are taken to lead from one of the two to the other."
    else:
        yield "Where the links lead is not given; `nvidia-smi nvlink -R` shows it."


def _notes(links: Sequence[GpuLinks], *, inferred: bool) -> Iterator[str]:
    for gpu in links:
        inactive = [str(link) for link, rate in sorted(gpu.rates.items()) if rate is None]
        if inactive:
            yield f"{gpu.gpu.name} has inactive links: {', '.join(inactive)}."
        elif not gpu.active:
            yield f"{gpu.gpu.name} has no active link."
    if inferred:
        yield "Bus ids are taken to be those of the GPUs in the order of their numbers, as nvidia-smi numbers them."
