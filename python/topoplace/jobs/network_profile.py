"""The load that jobs put on the machines' network, and how much a loaded network slows them down.

Loads are fractions of the capacity of a machine's network interface. A program that only sends, such as iperf, causes
a load of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class NetworkProfile:
    """Two measurements of how an application with remote GPUs depends on the network (thesis, section 3.3).

    alone: share s of run time T spent in communication on an idle network. contended: share s' of run time T' on a
    network that another program fills. Computation takes equally long in both, (1 - s) T = (1 - s') T'. So a full
    network slows the application down by T' / T = (1 - s) / (1 - s'). In between we assume a slowdown linear in the
    load.
    """

    alone: float
    contended: float
    local: float = 0.0
    """Share of run time spent in communication with local GPUs; the slowdown is then proportional to it."""

    def __post_init__(self) -> None:
        _checks.real(self.alone, "alone", ValueError, high=0.99)
        _checks.real(self.contended, "contended", ValueError, high=0.99)
        _checks.real(self.local, "local", ValueError, high=max(self.alone, 0.0))
        if self.contended < self.alone:
            raise ValueError(f"contended = {self.contended}: must be at least alone = {self.alone}")

    def sensitivity(self, *, remote: bool) -> float:
        """Return the extra run time on a full network, relative to the run time alone."""
        full = (1 - self.alone) / (1 - self.contended) - 1
        return full if remote else full * self.local / self.alone if self.alone else 0.0

    def slowdown(self, load: float, *, remote: bool) -> float:
        """Return the run time relative to an idle network if other jobs cause this load; above 1 counts as 1."""
        return 1 + min(load, 1.0) * self.sensitivity(remote=remote)

    def traffic(self, *, remote: bool) -> float:
        """Return the load that one GPU puts on its machine's network and, if remote, on its process's machine."""
        return self.alone if remote else self.local


NEUTRAL = NetworkProfile(0.0, 0.0)
"""The profile of an unmeasured application, which sends nothing and is never slowed down."""


class OnMachine(Protocol):
    """A process of a job, such as a `HostShare`."""

    @property
    def machine(self) -> int:
        """Return the number of the process's machine."""
        ...


def traffic(
    profile: NetworkProfile,
    gpus: Sequence[int],
    shares: Sequence[OnMachine],
    remote: Sequence[int],
    machine_of: Sequence[int],
) -> Iterator[tuple[int, float]]:
    """Yield (machine, load) for every GPU of a job, and for both ends of remote ones; machines may repeat."""
    for task, gpu in enumerate(gpus):
        far = gpu in remote
        host = shares[task * len(shares) // len(gpus)].machine if shares else machine_of[gpu]
        yield host, profile.traffic(remote=far)
        if far:
            yield machine_of[gpu], profile.traffic(remote=True)
