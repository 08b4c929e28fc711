"""Differences between two topologies, and faults visible in one: degraded links, unhealthy GPUs, unusual machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.devices import MISSING_GPU, Gpu, written_device
from topoplace.topology.links.link_kinds import NONE, NVLINKS, PATH_KINDS, SPEEDS, Link, LinkKind
from topoplace.topology.topology import Topology

_WIRED = NVLINKS | {LinkKind.NVSWITCH, LinkKind.XGMI, LinkKind.C2C, LinkKind.ICI}
_MAX_GPUS = 1024
"""Limit on GPUs of a topology that is compared pair by pair; clusters may be larger."""

_LEAST_PCIE = 1.5
"""GB/s below which a PCIe path is suspect (one lane, an idle link or a mistake); four lanes of PCIe 2 carry more."""
_LEAST_SHARE, _MOST_SHARE = 0.1, 2.0
"""Range of a speed divided by the catalogue's nominal speed that is plausible, such as in a measurement."""

Facts = Mapping[str, tuple[str, float]]
"""For each subject, such as a GPU or a pair: a text that describes it, and a number that falls if it gets worse."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two topologies; `before` and `after` are texts, "" for something missing."""

    what: str
    """The subject, such as "GPU0 - GPU3", "machine7: GPU2" or "network"."""
    before: str
    after: str
    worse: bool
    """True if something was lost, or became slower or unhealthy."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a topology that an operator should look at."""

    where: str
    why: str
    serious: bool = True
    """False for a note, and for something merely unknown or assumed."""


def shown(link: Link) -> str:
    """Return a short description of `link`, such as "2 x NVLINK2, 50 GB/s"."""
    if link == NONE:
        return "no path"
    return f"{f'{link.lanes} x ' if link.lanes > 1 else ''}{link.kind.label}, {link.gb_per_s:g} GB/s"


# ---- differences -----------------------------------------------------------------------------------------------


def diff(before: Topology, after: Topology) -> tuple[Change, ...]:
    """Return what differs in `after` from `before`, such as a lost link; () if both are equal.

    GPUs and machines are matched by name. Clusters are compared template by template, any other topology by its pairs
    of GPUs. Raise TopologyError for more than 1,024 GPUs in a template, or in a topology that is no cluster.
    """
    _checks.instance(before, Topology, "before", TopologyError)
    _checks.instance(after, Topology, "after", TopologyError)
    if before == after:
        return ()
    found = [*_changed(_settings(before), _settings(after))]
    if before.fabric is None or after.fabric is None:
        found += _changed(_facts(before), _facts(after))
    else:
        found += _changed_machines(before, after)
    digests = before.digest()[:12], after.digest()[:12]
    return tuple(found) or (Change("content, such as the order of things", *digests, worse=False),)


def _changed_machines(before: Topology, after: Topology) -> Iterator[Change]:
    old = dict(zip(before.machine_names, before.template_of, strict=True))
    new = dict(zip(after.machine_names, after.template_of, strict=True))
    yield from _changed(dict.fromkeys(old, ("there", 1.0)), dict.fromkeys(new, ("there", 1.0)))
    known: dict[tuple[int, int], tuple[Change, ...]] = {}
    for name in filter(new.__contains__, old):
        pair = old[name], new[name]
        if pair not in known:
            templates = before.templates[pair[0]], after.templates[pair[1]]
            known[pair] = tuple(_changed(*map(_facts, templates)))
        for one in known[pair]:
            yield Change(f"{name}: {one.what}", one.before, one.after, one.worse)
    yield from _changed(_domains(before), _domains(after))


def _changed(before: Facts, after: Facts) -> Iterator[Change]:
    for what in dict.fromkeys((*before, *after)):
        old, new = before.get(what), after.get(what)
        if old != new:
            (old_text, old_worth), (new_text, new_worth) = old or ("", 0.0), new or ("", 0.0)
            yield Change(what, old_text, new_text, new_worth < old_worth)


def _settings(topology: Topology) -> Facts:
    facts = {
        "name": (topology.name, 0.0),
        "network": (f"{topology.network:g} GB/s", topology.network),
        "distances": (str(topology.distances), 0.0),
        "notes": ("; ".join(topology.notes), 0.0),
    }
    levels = topology.levels
    for level, link in zip(levels, topology.pairs.of_levels, strict=True):
        text = f"{shown(link)}{', of GPUs on one rail' if level.rail else ''}{', PXN' if level.pxn else ''}"
        facts[f"level {level.name}"] = (text, link.gb_per_s / 2 if level.rail else link.gb_per_s)
    return facts | ({"order of levels": (", ".join(level.name for level in levels), 0.0)} if levels else {})


def _facts(topology: Topology) -> Facts:
    """Return the facts of a topology to compare: GPUs, adapters, components, partitions, and the link of every pair."""
    if topology.num_gpus > _MAX_GPUS:
        raise TopologyError(
            f"{topology.num_gpus} GPUs are too many to compare pair by pair (at most {_MAX_GPUS}); "
            "a topology made by Topology.cluster may be larger"
        )
    names = _names(topology)
    facts = {
        "machine": (topology.name if topology.num_machines == 1 else "", 0.0),
        "default": (f"{topology.default:g} GB/s", topology.default),
        "assumed speeds": (", ".join(kind.name for kind in topology.assumed), 0.0),
    }
    facts |= {name: _gpu_fact(gpu) for name, gpu in zip(names, topology.gpus, strict=True)}
    for u, v in combinations(range(len(names)), 2):
        link = topology.link(u, v)
        facts[f"{names[u]} - {names[v]}"] = (shown(link), link.gb_per_s)
    for nic in topology.nics:
        words = [f"{nic.gb_per_s:g} GB/s"] if nic.gb_per_s else []
        words += [f"rail {nic.rail}"] if nic.rail is not None else []
        facts[f"NIC {nic.name}"] = (", ".join((*words, " ".join(nic.paths))), nic.gb_per_s or 1.0)
    facts |= _component_facts(topology, names)
    legal = " ".join(map(str, topology.partitions))
    return facts | {"partitions": (legal or "any set of GPUs", 0.0 if legal else 1.0)}


def _component_facts(topology: Topology, gpu_names: Sequence[str]) -> Facts:
    """Return the facts about components: the make of each, and the links between them and from GPUs."""
    components = [f"{part.kind.value} {part.name}" for part in topology.components]
    facts: dict[str, tuple[str, float]] = {}
    for name, part in zip(components, topology.components, strict=True):
        facts[name] = (part.cpu or "there", 1.0)
    parts = [*gpu_names, *components]
    for a, b, link in topology.component_links:
        pair = f"{parts[a]} - {parts[b]}"
        facts[f"{pair}, {link.kind.name}" if pair in facts else pair] = (shown(link), link.gb_per_s)
    return facts


def _names(topology: Topology) -> list[str]:
    """Return a unique name for each GPU."""
    one = topology.num_machines == 1
    names = [gpu.name if one else f"{gpu.machine}/{gpu.name}" for gpu in topology.gpus]
    often = {name for name, count in Counter(names).items() if count > 1}
    return [f"{name} (index {i})" if name in often else name for i, name in enumerate(names)]


def _gpu_fact(gpu: Gpu) -> tuple[str, float]:
    record = written_device(gpu)
    words = [
        f"{key} {value}"
        for key, value in record.items()
        if value is not None and key not in ("name", "machine", "healthy")
    ]
    return ", ".join(("healthy" if gpu.healthy else "not healthy", *words)), 1.0 + gpu.healthy


def _domains(cluster: Topology) -> Facts:
    return {
        f"{machine}: {level.name}": (domain, 1.0)
        for level in (cluster.levels)
        for machine, domain in zip(cluster.machine_names, level.domains, strict=True)
        if domain is not None
    }


# ---- findings --------------------------------------------------------------------------------------------------


def check(topology: Topology) -> tuple[Finding, ...]:
    """Return findings for an operator: notes, assumed speeds, unhealthy GPUs, unknown links, odd machines."""
    _checks.instance(topology, Topology, "topology", TopologyError)
    noted = (note for template in topology.templates for note in template.notes)
    notes = dict.fromkeys((*topology.notes, *noted))
    found = [Finding(topology.name, note, serious=note.startswith(MISSING_GPU)) for note in notes]
    groups = _by_template(topology)
    for template, machines in groups.items():
        where = machines[0] if len(machines) == 1 else f"{machines[0]} and {len(machines) - 1} like it"
        found += _of_machine(where, topology.templates[template])
    return (*found, *_odd_ones_out(list(groups.values())))


def _by_template(topology: Topology) -> dict[int, list[str]]:
    if topology.fabric is None:
        return {0: [topology.name]}
    found: dict[int, list[str]] = {}
    for name, template in zip(topology.machine_names, topology.template_of, strict=True):
        found.setdefault(template, []).append(name)
    return found


def _of_machine(where: str, machine: Topology) -> Iterator[Finding]:
    for gpu in machine.gpus:
        if not gpu.healthy:
            yield Finding(f"{where}: {gpu.name}", "is not healthy")
    if machine.num_gpus > _MAX_GPUS:
        return
    for kind in machine.assumed:
        yield Finding(where, f"the speed of its {kind.name} links is assumed", serious=False)
    links = {pair: machine.link(*pair) for pair in combinations(range(machine.num_gpus), 2)}
    unknown = sum(link.kind is LinkKind.UNKNOWN for link in links.values())
    if unknown:
        yield Finding(where, f"{unknown} of {len(links)} pairs of GPUs have an unknown connection")
    for why in _implausible([*links.values(), *(link for _, _, link in machine.component_links)]):
        yield Finding(where, why)
    lanes = _lanes(links, machine.num_gpus)
    usual = _most_lanes(machine, lanes)
    for gpu in machine.gpus:
        most = usual.get((gpu.machine, gpu.model), 0)
        if lanes[gpu.index] < most:
            yield Finding(
                f"{where}: {gpu.name}",
                f"has {lanes[gpu.index]} links, but most GPUs of its model have {most}",
            )


def _implausible(links: Sequence[Link]) -> Iterator[str]:
    """Yield what is odd about the speeds of `links`, by kind and speed: too slow or too fast for any of their kind."""
    counted = Counter(link for link in links if link != NONE and not _is_plausible(link))
    for link, count in sorted(counted.items(), key=lambda item: (item[0].kind.value, item[0].gb_per_s)):
        yield f"{count} links or paths of {shown(link)} each: no such link is known; measure them with --measured"


def _is_plausible(link: Link) -> bool:
    """Return True if a link of its kind may have its speed: one lane to twice the fastest that the catalogue has."""
    kinds = (LinkKind.PCIE,) if link.kind in PATH_KINDS else (link.kind,)
    known = [speed for speed in SPEEDS.values() if speed.kind in kinds]
    if not known:
        return True
    least = _LEAST_PCIE if link.kind in PATH_KINDS else _LEAST_SHARE * min(speed.gb_per_s for speed in known)
    return least <= link.gb_per_s / link.lanes <= _MOST_SHARE * max(speed.gb_per_s for speed in known)


def _lanes(links: Mapping[tuple[int, int], Link], num_gpus: int) -> list[int]:
    """Return the number of each GPU's NVLinks, xGMI and similar links.

    Direct links to different GPUs add up. Links into NVSwitches serve all pairs of a GPU, so they count once.
    """
    lanes = [0] * num_gpus
    for pair, link in links.items():
        for end in pair if link.kind in _WIRED else ():
            lanes[end] = (
                max(lanes[end], link.lanes) if link.kind is LinkKind.NVSWITCH else lanes[end] + link.lanes
            )
    return lanes


def _most_lanes(machine: Topology, lanes: list[int]) -> dict[tuple[str, str | None], int]:
    """Return, by machine and GPU model, the usual number of links: the one that more than half of these GPUs have."""
    groups: dict[tuple[str, str | None], Counter[int]] = {}
    for gpu in machine.gpus:
        groups.setdefault((gpu.machine, gpu.model), Counter())[lanes[gpu.index]] += 1
    return {
        key: count.most_common(1)[0][0]
        for key, count in groups.items()
        if 2 * count.most_common(1)[0][1] > count.total()
    }


def _odd_ones_out(groups: list[list[str]]) -> Iterator[Finding]:
    """Yield a finding for each machine of a rare kind: at most a tenth as many machines as the most common kind has.

    groups: the names of the machines of each template.
    """
    usual = max(groups, key=len)
    for group in groups:
        if 10 * len(group) <= len(usual):
            for machine in group:
                yield Finding(machine, f"differs from {len(usual)} machines that are like {usual[0]}")
