"""Failures of parts: how often they come, by published counts, what they take out of service, and for how long."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.topology.topology import Topology

GPU: Final = "gpu"
MACHINE: Final = "machine"
NOTHING: Final = "nothing"
_DAY: Final = 86_400.0
_OFFSET: Final = 1
"""Added to the numbers of kinds: numpy draws the same from the seeds [7, 0] and 7, which the performance model has."""


@dataclass(frozen=True, slots=True)
class FailingPart:
    """A kind of part, and how often it fails: `count` times in `days` days among `among` parts.

    Failures are independent of each other and of load: a Poisson process for each kind.

    Args:
        per: What `among` counts: "gpu", "machine", or a level of the topology such as "rack".
        out: What a failure takes out of service: "gpu", "machine", the domain of a level, or "nothing", as for
            software, whose failure only restarts the job.
        repair_s: Seconds until it is in service again.

    Raises:
        ValueError: Names a wrong value.
    """

    name: str
    count: float
    among: int
    days: float
    per: str = GPU
    out: str = MACHINE
    repair_s: float = _DAY

    def __post_init__(self) -> None:
        for name in ("name", "per", "out"):
            _checks.text(getattr(self, name), name, ValueError)
        for name in ("count", "repair_s"):
            _checks.real(getattr(self, name), name, ValueError, high=MAX_NUMBER)
        _checks.integer(self.among, "among", ValueError, low=1, high=1 << 53)
        _checks.positive(self.days, "days", ValueError, high=MAX_NUMBER)
        if self.per == NOTHING:
            raise ValueError(f"per = {NOTHING!r}: nothing cannot fail")

    @property
    def rate(self) -> float:
        """Return the failures of one part in a second."""
        return self.count / (self.among * self.days * _DAY)


@dataclass(frozen=True, slots=True)
class Failures:
    """The kinds of parts that fail in a simulation.

    Raises:
        ValueError: Names a wrong part.
    """

    parts: tuple[FailingPart, ...]

    def __post_init__(self) -> None:
        parts = _checks.ordered(self.parts, "parts", ValueError)
        names: set[str] = set()
        for i, part in enumerate(parts):
            _checks.instance(part, FailingPart, f"parts[{i}]", ValueError)
            if part.name in names:
                raise ValueError(f"parts[{i}].name = {_checks.shown(part.name)} is there twice")
            names.add(part.name)
        object.__setattr__(self, "parts", parts)

    @classmethod
    def llama3(cls, *, repair_s: float = _DAY, network: str = MACHINE) -> Self:
        """Return the 419 interruptions of Llama 3's training in 54 days on 16,384 GPUs (arXiv:2407.21783, table 5).

        63 of them need no repair: software, watchdog timeouts of NCCL and dependencies. What the paper does not say is
        assumed: a fault of a GPU takes its machine out of service, as hosts are serviced as a whole.

        Args:
            repair_s: Seconds that a machine is out of service; a day is an assumption, too.
            network: What the fault of a switch or a cable takes out, such as "rack"; the paper does not divide the two.

        Raises:
            ValueError: Names a wrong value.
        """
        out = dict.fromkeys(_LLAMA3_SOFTWARE, NOTHING) | {_LLAMA3_NETWORK: network}
        return cls(
            tuple(
                FailingPart(name, count, 16_384, 54.0, out=out.get(name, MACHINE), repair_s=repair_s)
                for name, count in _LLAMA3.items()
            )
        )


_LLAMA3_NETWORK: Final = "network switch or cable"
_LLAMA3_SOFTWARE: Final = ("software", "NCCL watchdog", "dependency")
_LLAMA3: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{"GPU": 148, "HBM3": 72, "software": 54, _LLAMA3_NETWORK: 35, "host maintenance": 32},
        **{"GPU SRAM": 19, "GPU system processor": 17, "NIC": 7, "NCCL watchdog": 7},
        **{"silent data corruption": 6, "GPU thermal interface or sensor": 6, "SSD": 3, "power supply": 3},
        **{"server chassis": 2, "IO expansion board": 2, "dependency": 2, "CPU": 2, "system memory": 2},
    }
)
PRESETS: Final[Mapping[str, Callable[[], Failures]]] = MappingProxyType({"llama3": Failures.llama3})
"""Published counts by name."""


class Failure(NamedTuple):
    """A failure that stopped a job."""

    part: str
    """The name of the kind of part."""
    time: float
    """In seconds."""


class Strike(NamedTuple):
    """A part that fails now."""

    failure: Failure
    gpus: tuple[int, ...]
    """The GPUs whose jobs stop."""
    is_out: bool
    """True if these GPUs are out of service from now on."""


class Outages:
    """The failures of a simulation, one after another, and the GPUs that are out of service because of them.

    Such GPUs are unhealthy in the cluster, which undoes no drain and no hold. A part that is out of service does not
    fail.
    """

    def __init__(self, failures: Failures, cluster: Cluster, seed: int) -> None:
        """Draw the first failures; ValueError names a part with a level that the topology does not have."""
        self._cluster = cluster
        self._closed = frozenset(cluster.topology.unhealthy_gpus)
        self._until = np.zeros(cluster.topology.num_gpus)
        self._repairs: list[float] = []
        self._kinds = [
            _Kind(part, cluster.topology, f"failures.parts[{i}]", np.random.default_rng([seed, i + _OFFSET]))
            for i, part in enumerate(failures.parts)
        ]
        self._next = [(time, i) for i, kind in enumerate(self._kinds) if (time := kind.gap()) < math.inf]
        heapq.heapify(self._next)

    @property
    def are_any(self) -> bool:
        """Return True if a part is out of service."""
        return bool(self._repairs)

    def next_time(self) -> float:
        """Return the time in seconds of the next failure or repair; infinite if there is none."""
        failure = self._next[0][0] if self._next else math.inf
        return min(failure, self._repairs[0]) if self._repairs else failure

    def due(self, now: float) -> Iterable[Strike]:
        """Put what is repaired at `now` (seconds) into service, then yield each part that fails, which is then out."""
        while self._repairs and self._repairs[0] == now:
            heapq.heappop(self._repairs)
            back = np.flatnonzero(self._until == now).tolist()
            self._cluster.native.set_unhealthy(
                [gpu for gpu in back if gpu not in self._closed], unhealthy=False
            )
        while self._next and self._next[0][0] == now:
            number = self._next[0][1]
            kind = self._kinds[number]
            gpu = kind.struck()
            heapq.heapreplace(self._next, (now + kind.gap(), number))
            if gpu not in self._closed and self._until[gpu] <= now:
                yield self._strike(kind, gpu, now)

    def _strike(self, kind: _Kind, gpu: int, now: float) -> Strike:
        failure = Failure(kind.part.name, now)
        if kind.part.out == NOTHING:
            return Strike(failure, (gpu,), is_out=False)
        gpus = kind.taken_out(gpu)
        end = now + kind.part.repair_s
        self._until[gpus] = np.maximum(self._until[gpus], end)
        heapq.heappush(self._repairs, end)
        found = tuple(gpus.tolist())
        self._cluster.native.set_unhealthy(found, unhealthy=True)
        return Strike(failure, found, is_out=True)


class _Kind:
    """A kind of part on a topology, with the stream of its random numbers."""

    def __init__(self, part: FailingPart, topology: Topology, what: str, random: np.random.Generator) -> None:
        self.part = part
        self._random = random
        self._unit_of = domains(topology, part.per, f"{what}.per")
        self._out_of = self._unit_of if part.out == NOTHING else domains(topology, part.out, f"{what}.out")
        self._num_units = int(self._unit_of.max()) + 1
        self._rate = part.rate * self._num_units

    def gap(self) -> float:
        """Return the seconds until the next failure; infinite if parts of this kind never fail."""
        return float(self._random.exponential(1 / self._rate)) if self._rate else math.inf

    def struck(self) -> int:
        """Return a GPU of the part that fails; all parts are equally likely."""
        unit = int(self._random.integers(self._num_units))
        gpus = np.flatnonzero(self._unit_of == unit)
        return int(gpus[self._random.integers(len(gpus))])

    def taken_out(self, gpu: int) -> NDArray[np.int64]:
        """Return the GPUs that are out of service if the part of this GPU fails."""
        return np.flatnonzero(self._out_of == self._out_of[gpu])


def domains(topology: Topology, level: str, what: str = "level") -> NDArray[np.int64]:
    """Return the number of each GPU's domain at a level; a machine in none is a domain of its own.

    level: "gpu" and "machine" are levels, too. what: the level's name in a ValueError about an unknown one.
    """
    machine_of = np.asarray(topology.machine_of, dtype=np.int64)
    levels = {one.name: one for one in topology.levels}
    if level == GPU:
        return np.arange(topology.num_gpus)
    if level == MACHINE:
        codes = machine_of
    else:
        _checks.one_of(level, what, (GPU, MACHINE, *levels), ValueError)
        own = levels[level].codes
        codes = np.where(own < 0, len(own) + np.arange(len(own)), own)[machine_of]
    return np.unique(codes, return_inverse=True)[1]
