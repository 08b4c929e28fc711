"""Communication time by its definition, in plain loops: routes over ports, rings and channels of collectives, phases.

docs/concepts.md says what the time is. This shares no code with the kernels that compute it for decisions. Two things
are inputs: which ports a topology has, how fast they are and which of them GPUs and domains use (`topology.ports`), and
the GB/s of the rings that the library plans inside a machine or an NVLink domain (`topoplace.collective`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Final, NamedTuple

from topoplace.collective import all_reduce_bandwidth, ring_bandwidth
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.jobs.collectives import Collective
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.makers import are_mixed, names_several
from topoplace.topology.ports import Ports
from topoplace.topology.topology import Topology

Flow = tuple[int, int, float]
"""The GPU that sends, the one that receives, and the GB."""
_SENT: Final[Mapping[str, Callable[[int], float]]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "all_to_all": lambda n: 1 / n,
    "send": lambda n: 1 / 2,
}
"""The GB from a task to the next one, or to each other one, for a collective of 1 GB among n tasks."""
_WITHOUT_RINGS: Final = ("all_to_all", "send")
_MOST_RATED: Final = 64
"""Rings are not planned on machines of more GPUs."""


class Phase(NamedTuple):
    """Flows that begin together."""

    flows: Sequence[tuple[Sequence[int] | None, float]]
    """The hops and the GB of each flow; None without a path. A hop is twice a port's number, plus 1 on the way in."""
    at_least: float = 0.0
    """Seconds of the slowest planned rings."""


class _Adapter(NamedTuple):
    """An adapter by which the channels of a part of a collective go to other parts; sorted in this order."""

    rail: int
    machine: int
    number: int
    enters: int
    """The GPU where a channel comes in."""
    leaves: int
    """The GPU where a channel goes out."""


class RecomputedTime:
    """The communication time of jobs on a topology, by the rates of links with which the library plans its rings."""

    def __init__(self, topology: Topology, rates: Rates | str = DEFAULT_RATES) -> None:
        self._topology, self._rates = topology, rates
        self._ports = ports = topology.derived(Ports)
        self._network = len(ports.entries) - 1
        """The segment between machines."""
        self._machine_of = topology.machine_of.tolist()
        self._adapter_of = ports.adapters.tolist()
        ends, slower = ports.links
        self._links = {
            (u, v): (port, bool(also))
            for (u, v, port), also in zip(ends.tolist(), slower.tolist(), strict=True)
        }
        self._rail_of: dict[int, int] = {}
        for adapter, rail in zip(self._adapter_of, ports.rails.tolist(), strict=True):
            self._rail_of[adapter] = min(rail, self._rail_of.get(adapter, rail))
        self._relays: dict[tuple[int, int], int] = {}
        self._places = list(zip(*(one.tolist() for one in ports.relays), strict=True))
        """With PXN, the NVSwitches and the rail of each GPU."""
        for gpu, place in enumerate(self._places):
            self._relays.setdefault(place, gpu)
        self._routes: dict[tuple[int, int], Sequence[int] | None] = {}
        self._gb_per_s: dict[tuple[bool, tuple[int, ...]], float] = {}

    def by_dimension(self, job: JobGraph, gpus: Sequence[int]) -> dict[str, float]:
        """Return the seconds of each dimension of a job alone, if task i runs on `gpus[i]`."""
        if are_mixed(self._topology, gpus) and not names_several(job.gpu_models):
            return dict.fromkeys((one.dimension for one in job.collectives), math.inf)
        return {name: self.seconds(phase) for name, phase in self.phases(job, gpus).items()}

    def phases(self, job: JobGraph, gpus: Sequence[int], *, planned: bool = True) -> dict[str, Phase]:
        """Return what each dimension of a job sends; planned: as in `communication_time`."""
        flows: dict[str, list[tuple[Sequence[int] | None, float]]] = defaultdict(list)
        at_least: dict[str, float] = defaultdict(float)
        for one in job.collectives:
            placed = [gpus[task] for task in one.tasks]
            rings = self._rings(one, placed) if planned and one.kind not in _WITHOUT_RINGS else None
            sent, seconds = rings or (_sent(one, placed), 0.0)
            flows[one.dimension] += [(self.route(u, v), gigabytes) for u, v, gigabytes in sent]
            at_least[one.dimension] = max(at_least[one.dimension], seconds)
        return {name: Phase(found, at_least[name]) for name, found in flows.items()}

    def seconds(self, phase: Phase) -> float:
        """Return the seconds of the busiest port or the slowest rings; infinity if there is no path."""
        loads: dict[int, float] = defaultdict(float)
        for hops, gigabytes in phase.flows:
            if hops is None:
                return math.inf
            for hop in hops:
                loads[hop] += gigabytes
        return max([phase.at_least, *(self.seconds_on(hop, sent) for hop, sent in loads.items())])

    def seconds_on(self, hop: int, gigabytes: float) -> float:
        """Return how long a hop takes for so many GB."""
        speed = float(self._ports.gb_per_s[hop // 2])
        return gigabytes / speed if speed else math.inf if gigabytes else 0.0

    # ---- routes ----------------------------------------------------------------------------------------------

    def route(self, start: int, end: int) -> Sequence[int] | None:
        """Return the hops of what one GPU sends to another; None without a path."""
        if (start, end) not in self._routes:
            relay = self._relay(start, end)
            legs = [(start, end)] if relay is None else [(start, relay), (relay, end)]
            found = [self._leg(*leg) for leg in legs]
            hops = [hop for leg in found if leg is not None for hop in leg]
            self._routes[start, end] = None if None in found else hops
        return self._routes[start, end]

    def _leg(self, start: int, end: int) -> list[int] | None:
        if start == end:
            return []
        port, is_shared = self._links.get((min(start, end), max(start, end)), (-1, True))
        hops = [2 * port + (start > end)] if port >= 0 else []
        level = self._meeting(start, end) if is_shared else None
        if level is None:
            return hops or None
        return [*hops, *self._way(level, start, end, 0), *self._way(level, end, start, 1)]

    def _meeting(self, start: int, end: int) -> int | None:
        """Return the nearest level at which both are in one domain and can enter; None if there is none."""
        for number, level in enumerate(self._ports.levels):
            entry = self._ports.entries[level.segment]
            if level.domain[start] == level.domain[end] >= 0 and min(entry[start], entry[end]) >= 0:
                return number
        return None

    def _way(self, level: int, gpu: int, other: int, direction: int) -> Iterator[int]:
        """Yield the hops between a GPU and the level at which it meets another one."""
        levels = self._ports.levels
        segment = levels[level].segment
        ports = [int(self._ports.entries[segment][gpu])]
        if segment == self._network:
            ports.append(int(self._ports.access[gpu]))
        below = [one.uplink for one in levels[:level] if one.segment == segment]
        ports += [int(uplink[gpu]) for uplink in below if uplink[gpu] != uplink[other]]
        return (2 * port + direction for port in ports if port >= 0)

    def _relay(self, start: int, end: int) -> int | None:
        """Return the GPU of the sender's machine, on the receiver's rail, through which traffic goes with PXN."""
        if not self._places or self._is_inside(start, end):
            return None
        (ours, here), (theirs, there) = self._places[start], self._places[end]
        if any((ours < 0, theirs < 0, ours == theirs, here == there)):
            return None
        relay = self._relays.get((ours, there))
        is_joined = (
            relay is not None and self._is_inside(start, relay) and self._meeting(relay, end) is not None
        )
        return relay if is_joined else None

    def _is_inside(self, start: int, end: int) -> bool:
        """Return True if two GPUs meet before the network."""
        level = self._meeting(start, end)
        return level is not None and self._ports.levels[level].segment < self._network

    # ---- rings and channels ----------------------------------------------------------------------------------

    def _rings(self, one: Collective, gpus: Sequence[int]) -> tuple[list[Flow], float] | None:
        """Return what the rings of a collective send, and the seconds of those inside domains; None if there are none.

        Then the tasks send in their order.
        """
        carried = one.gigabytes * _SENT[one.kind](len(gpus))
        by_domain: dict[Hashable, list[int]] = {}
        for gpu in gpus:
            by_domain.setdefault(self._domain_of(gpu), []).append(gpu)
        parts = list(by_domain.values())
        if len(parts) > 1 and min(self._adapter_of[gpu] for gpu in gpus) < 0:
            return None
        adapters = [self._adapters(part) for part in parts]
        count = min(map(len, adapters)) if len(parts) > 1 else 0
        flows, longest = list(_between(adapters, count, carried, is_closed=one.kind != "broadcast")), 0.0
        for part, own in zip(parts, adapters, strict=True):
            inside = self._inside(one.kind, part, [adapter.leaves for adapter in own[:count]], carried)
            if inside is None:
                return None
            flows += inside[0]
            longest = max(longest, inside[1])
        return flows, longest

    def _domain_of(self, gpu: int) -> Hashable:
        """Return the NVLink domain of a GPU, or else its machine."""
        machine = self._machine_of[gpu]
        codes = [level.codes[machine] for level in self._topology.levels if level.kind is LinkKind.NVSWITCH]
        return next((("domain", int(code)) for code in reversed(codes) if code >= 0), machine)

    def _adapters(self, part: Sequence[int]) -> list[_Adapter]:
        users: dict[int, list[int]] = {}
        is_ring_of_ports = len(part) > 1 and self._passes_ports(part)
        for gpu in self._near(part) if is_ring_of_ports else part:
            users.setdefault(self._adapter_of[gpu], []).append(gpu)
        return sorted(
            _Adapter(
                self._rail_of[number],
                self._machine_of[gpus[0]],
                number,
                gpus[0],
                gpus[-1 if is_ring_of_ports else 0],
            )
            for number, gpus in users.items()
        )

    def _near(self, part: Sequence[int]) -> list[int]:
        """Return the GPUs of a part in the order of a ring over ports."""
        return sorted(part, key=lambda gpu: (self._machine_of[gpu], self._ports.near_order[gpu]))

    def _passes_ports(self, part: Sequence[int]) -> bool:
        """Return True if the rings among these GPUs pass PCIe ports, or if no ring is known."""
        switches = {int(self._ports.switches[gpu]) for gpu in part}
        is_switched = self._domain_of(part[0]) != self._machine_of[part[0]] or (
            len(switches) == 1 and min(switches) >= 0
        )
        has_links = bool(self._ports.has_links[list(part)].any())
        return not self._rate("", part) or not (is_switched or has_links)

    def _rate(self, kind: str, part: Sequence[int]) -> float:
        """Return the GB/s of the rings that the library plans among GPUs, or of NVSwitches that reduce; 0 for none."""
        key = kind == "all_reduce", tuple(sorted(part))
        if key not in self._gb_per_s:
            machine = self._machine_of[part[0]]
            is_large = self._topology.template(machine).num_gpus > _MOST_RATED
            is_rated = self._domain_of(part[0]) != machine or not is_large
            asked = all_reduce_bandwidth if key[0] else ring_bandwidth
            self._gb_per_s[key] = asked(self._topology, key[1], rates=self._rates) if is_rated else 0.0
        return self._gb_per_s[key]

    def _inside(
        self, kind: str, part: Sequence[int], leaving: Sequence[int], carried: float
    ) -> tuple[list[Flow], float] | None:
        """Return the flows of rings inside a domain, and the planned seconds, which they take at most; None without a
        path.

        leaving: the GPU where each channel goes out, and so does not pass on to the next one.
        """
        if len(part) == 1:
            return [], 0.0
        rate = self._rate(kind, part)
        planned = carried / rate if rate else 0.0
        flows = self._ring_of_ports(part, leaving, carried) if self._passes_ports(part) else []
        alone = self.seconds(Phase([(self.route(u, v), sent) for u, v, sent in flows if sent]))
        scale = planned / alone if 0 < planned < alone else 1.0
        return None if math.isinf(alone) else ([(u, v, sent * scale) for u, v, sent in flows], planned)

    def _ring_of_ports(self, part: Sequence[int], leaving: Sequence[int], carried: float) -> list[Flow]:
        order, share = self._near(part), carried / max(1, len(leaving))
        steps = pairwise([*order, order[0]])
        return [(u, v, max(0.0, carried - leaving.count(u) * share)) for u, v in steps]


def _sent(one: Collective, gpus: Sequence[int]) -> Iterator[Flow]:
    """Yield all that the tasks of a collective send in their order, on `gpus`."""
    n = len(gpus)
    gigabytes = one.gigabytes * _SENT[one.kind](n)
    if one.kind == "all_to_all":
        total = sum(one.shares)
        received = [one.gigabytes * share / total for share in one.shares] or [gigabytes] * n
        yield from _sent_to_each(gpus, received)
        return
    yield from ((u, v, gigabytes) for u, v in pairwise(gpus))
    if one.kind == "send":
        yield from ((v, u, gigabytes) for u, v in pairwise(gpus))
    elif one.kind != "broadcast":
        yield gpus[-1], gpus[0], gigabytes


def _sent_to_each(gpus: Sequence[int], received: Sequence[float]) -> Iterator[Flow]:
    """Yield what each GPU sends to each other one; received: the GB that each gets from every other."""
    part_of = dict(zip(gpus, received, strict=True))
    return ((u, v, part_of[v]) for u, v in permutations(gpus, 2) if part_of[v])


def _between(
    adapters: Sequence[Sequence[_Adapter]], count: int, carried: float, *, is_closed: bool
) -> Iterator[Flow]:
    """Yield what `count` channels send from part to part, and from the last to the first if they are closed."""
    for ours, theirs in pairwise([*adapters, *adapters[: is_closed and count > 0]]):
        for here, there in _paired(ours, theirs)[:count]:
            yield here.leaves, there.enters, carried / count


def _paired(ours: Sequence[_Adapter], theirs: Sequence[_Adapter]) -> list[tuple[_Adapter, _Adapter]]:
    """Return pairs of adapters: first those of equal rail, rail by rail, then the others."""
    here, there = _by_rail(ours), _by_rail(theirs)
    same = [(one, there[place]) for place, one in here.items() if place in there]
    left = [one for place, one in here.items() if place not in there]
    right = [one for place, one in there.items() if place not in here]
    return [*same, *zip(left, right, strict=False)]


def _by_rail(adapters: Sequence[_Adapter]) -> dict[tuple[int, int], _Adapter]:
    """Return sorted adapters by their rail and their number among those of this rail."""
    seen: Counter[int] = Counter()
    found: dict[tuple[int, int], _Adapter] = {}
    for one in adapters:
        found[one.rail, seen[one.rail]] = one
        seen[one.rail] += 1
    return found


def recomputed_time(topology: Topology, rates: Rates | str | None) -> RecomputedTime:
    """Return what computes the times on a topology, made once for each table of rates; None for the default."""
    kept = topology.derived(_nothing_yet)
    asked = DEFAULT_RATES if rates is None else rates
    if asked not in kept:
        kept.setdefault(asked, RecomputedTime(topology, asked))
    return kept[asked]


def _nothing_yet(_: Topology) -> dict[Rates | str, RecomputedTime]:
    return {}
