"""Traffic counters of this host's GPUs, by NVML or DCGM: the bytes that GPUs send each other while a program runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.discovery.live import nvml, programs
from topoplace.discovery.live.programs import NotHereError
from topoplace.errors import TopologyError
from topoplace_lab.measuring import dcgm_rates

Bytes = NDArray[np.float64]
_KIB: Final = 1024
_MAX_LINKS: Final = 18
_TIMEOUT_S: Final = 60.0
_MAX_GPUS: Final = 4096


@dataclass(frozen=True, eq=False)
class CounterTraffic:
    """The bytes that some GPUs of this host sent while they were recorded.

    source: "NVML" or "DCGM". seconds: length of the recording. gpus: their numbers, k of them; the arrays below have
    the same order.
    """

    source: str
    seconds: float
    gpus: tuple[int, ...]
    sent: Bytes
    """(k, k) bytes from the GPU of the row to the GPU of the column, over NVLinks that join the two."""
    elsewhere: Bytes
    """(k,) bytes over NVLinks whose other end is none of these GPUs, such as an NVSwitch, or is unknown."""
    pcie: Bytes
    """(k,) bytes over PCIe, to other GPUs or to the host, from rates sampled at intervals."""

    @property
    def pairs_are_told(self) -> bool:
        """Return True if counters state the receiving GPU; False if `by_pair` divides traffic evenly."""
        return bool(self.sent.any() and not self.elsewhere.any())

    def by_pair(self) -> Bytes:
        """Return the (k, k) bytes from GPU to GPU, for `JobGraph.from_traffic`.

        The bytes of a GPU in `elsewhere` count in equal parts to the others, as in data-parallel training. So do its
        bytes over PCIe, if no GPU used an NVLink.
        """
        others = len(self.gpus) - 1
        nvlink = bool(self.sent.any() or self.elsewhere.any())
        rest = self.elsewhere if nvlink else self.pcie
        matrix: Bytes = self.sent + (rest[:, None] / others if others else 0.0)
        np.fill_diagonal(matrix, 0.0)
        return matrix


class _Sent(NamedTuple):
    """Bytes since the last reading; the fields are those of `CounterTraffic`."""

    sent: Bytes
    elsewhere: Bytes
    pcie: Bytes

    def plus(self, other: _Sent) -> _Sent:
        return _Sent(self.sent + other.sent, self.elsewhere + other.elsewhere, self.pcie + other.pcie)


class _Source(Protocol):
    name: str
    gpus: tuple[int, ...]

    def since(self, seconds: float) -> _Sent:
        """Return what was sent since the last call, `seconds` ago."""
        ...


def record(
    wait: Callable[[float], bool], *, gpus: Sequence[int] | None = None, interval_s: float = 0.5
) -> CounterTraffic:
    """Record the bytes that this host's GPUs send each other until `wait` returns True.

    wait: called with `interval_s`, waits at most that many seconds, and returns True to end the recording, such as
    `Event.wait` of `threading`. gpus: different GPU numbers; None for all. interval_s: seconds between readings, above
    0. Sources are NVML (the extra `nvml`), which states pairs of GPUs, and `dcgmi`, which does not. Raise
    TopologyError, with the reason of each, if neither works, and ValueError for GPUs that do not exist or are repeated.
    """
    _checks.positive(interval_s, "interval_s", ValueError)
    wanted = None if gpus is None else _numbers(gpus)
    source = _open(wanted, interval_s)
    began = last = time.monotonic()
    total = source.since(0.0)
    total = _Sent(*(np.zeros_like(each) for each in total))
    ended = False
    while not ended:
        ended = wait(interval_s)
        now = time.monotonic()
        total = total.plus(source.since(now - last))
        last = now
    return CounterTraffic(source.name, last - began, source.gpus, *total)


def _numbers(gpus: Sequence[int]) -> tuple[int, ...]:
    given = _checks.sequence(gpus, "gpus", ValueError)
    numbers = [
        _checks.integer(gpu, f"gpus[{i}]", ValueError, low=0, high=_MAX_GPUS - 1)
        for i, gpu in enumerate(given)
    ]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"gpus = {_checks.shown(gpus)}: must be different GPUs, at least one")
    return tuple(numbers)


def _open(gpus: tuple[int, ...] | None, interval_s: float) -> _Source:
    silent: list[str] = []
    sources: dict[str, Callable[[], _Source]] = {
        "NVML": lambda: _nvml(gpus),
        "dcgmi": lambda: _Dcgm(gpus, interval_s),
    }
    for name, source in sources.items():
        try:
            return source()
        except NotHereError as reason:
            silent.append(f"{name}: {reason}")
    raise TopologyError("\n  ".join(("no counters of GPUs found; tried:", *silent)))


def _chosen(gpus: tuple[int, ...] | None, known: Sequence[int]) -> tuple[int, ...]:
    for i, gpu in enumerate(gpus or ()):
        if gpu not in known:
            raise ValueError(f"gpus[{i}] = {gpu}: the GPUs are {', '.join(map(str, known)) or 'none'}")
    return gpus or tuple(known)


# ---- NVML ----------------------------------------------------------------------------------------------------------


def _nvml(gpus: tuple[int, ...] | None) -> _Source:
    library = nvml.initialised()
    try:
        return _Nvml(library, gpus)
    except library.NVMLError as error:
        raise NotHereError(str(error)) from None


class _Nvml:
    """Counters of each NVLink since the driver was loaded, with its other end, and rates of PCIe."""

    name = "NVML"

    def __init__(self, library: Any, gpus: tuple[int, ...] | None) -> None:
        self._library = library
        self.gpus = _chosen(gpus, range(library.nvmlDeviceGetCount()))
        if not self.gpus:
            raise NotHereError("the driver reports no GPU")
        self._handles = [library.nvmlDeviceGetHandleByIndex(gpu) for gpu in self.gpus]
        addresses = [library.nvmlDeviceGetPciInfo(handle).busId for handle in self._handles]
        self._ends = [list(self._links(handle, addresses)) for handle in self._handles]
        self._last = self._read()
        if not self._last and self._pcie(self._handles[0]) is None:
            raise NotHereError("no counters of NVLinks and PCIe on these GPUs")

    def _try(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._library, function)(*arguments)
        except (self._library.NVMLError, AttributeError):
            return None

    def _links(self, handle: Any, addresses: Sequence[object]) -> Iterator[tuple[int, int | None]]:
        """Yield each active NVLink of a GPU, with the column of the GPU at its other end, None if it has none."""
        for link in range(_MAX_LINKS):
            if self._try("nvmlDeviceGetNvLinkState", handle, link) == 1:
                remote = self._try("nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
                address = getattr(remote, "busId", None)
                yield link, addresses.index(address) if address in addresses else None

    def _read(self) -> dict[tuple[int, int], float]:
        """Return the bytes sent so far by (row of the GPU, NVLink), where there is a counter."""
        field = getattr(self._library, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", None)
        counts: dict[tuple[int, int], float] = {}
        for row, handle in enumerate(self._handles):
            links = [link for link, _ in self._ends[row]]
            values = (
                self._try("nvmlDeviceGetFieldValues", handle, [(field, link) for link in links])
                if links
                else None
            )
            for link, value in zip(links, values or (), strict=False):
                if value.nvmlReturn == 0:
                    counts[row, link] = _KIB * float(value.value.ullVal)
        return counts

    def _pcie(self, handle: Any) -> float | None:
        """Return the bytes per second that a GPU sends over PCIe now; None if that is not supported."""
        kilobytes = self._try("nvmlDeviceGetPcieThroughput", handle, 0)
        return None if kilobytes is None else 1000.0 * kilobytes

    def since(self, seconds: float) -> _Sent:
        """Return what was sent since the last call, `seconds` ago."""
        size = len(self.gpus)
        sent, elsewhere = np.zeros((size, size)), np.zeros(size)
        counts = self._read()
        for row, ends in enumerate(self._ends):
            for link, column in ends:
                more = max(counts.get((row, link), 0.0) - self._last.get((row, link), 0.0), 0.0)
                if column is None:
                    elsewhere[row] += more
                else:
                    sent[row, column] += more
        self._last = counts
        rates = [self._pcie(handle) or 0.0 for handle in self._handles]
        return _Sent(sent, elsewhere, seconds * np.array(rates))


# ---- DCGM ----------------------------------------------------------------------------------------------------------


class _Dcgm:
    """Rates of all NVLinks of a GPU together, and of PCIe, as `dcgmi dmon` prints them."""

    name = "DCGM"

    def __init__(self, gpus: tuple[int, ...] | None, interval_s: float) -> None:
        self._delay = str(max(round(1000 * interval_s), 100))
        self.gpus = _chosen(gpus, sorted(self._rates()))

    def _rates(self) -> dict[int, tuple[float, float]]:
        fields = ",".join(map(str, dcgm_rates.FIELDS))
        try:
            return dcgm_rates.parse(
                programs.output("dcgmi", ("dmon", "-e", fields, "-c", "1", "-d", self._delay), _TIMEOUT_S)
            )
        except ValueError as error:
            raise NotHereError(str(error)) from None

    def since(self, seconds: float) -> _Sent:
        """Return what was sent since the last call, `seconds` ago, at the rates of now."""
        known = self._rates()
        rates = np.array([known.get(gpu, (0.0, 0.0)) for gpu in self.gpus])
        size = len(self.gpus)
        return _Sent(np.zeros((size, size)), seconds * rates[:, 1], seconds * rates[:, 0])
