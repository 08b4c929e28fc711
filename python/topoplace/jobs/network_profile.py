"""What jobs and the network of machines do to each other: who sends how much where, and who is slowed down by it.

Loads are fractions of what a machine's network interface carries: 1 is what a program that does nothing but send, such
as iperf, makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class NetworkProfile:
    """How an application that drives remote GPUs depends on the network, by two measurements (thesis, section 3.3).

    The shares of its run time that it spends in communication are `alone`, s, and, beside a program that fills the
    network, `contended`, s'. What it computes takes as long both times, (1 - s) T = (1 - s') T', so that the full
    network makes it T' / T = (1 - s) / (1 - s') times as long. In between, the slowdown is taken as linear in the load.
    """

    alone: float
    contended: float
    local: float = 0.0
    """The share of its run time in communication when its GPUs are local; it is slowed down in proportion."""

    def __post_init__(self) -> None:
        _checks.real(self.alone, "alone", ValueError, high=0.99)
        _checks.real(self.contended, "contended", ValueError, high=0.99)
        _checks.real(self.local, "local", ValueError, high=max(self.alone, 0.0))
        if self.contended < self.alone:
            raise ValueError(f"contended = {self.contended} is less than alone = {self.alone}")

    def sensitivity(self, *, remote: bool) -> float:
        """By how much, relative to its run time alone, a full network lengthens it."""
        full = (1 - self.alone) / (1 - self.contended) - 1
        return full if remote else full * self.local / self.alone if self.alone else 0.0

    def slowdown(self, load: float, *, remote: bool) -> float:
        """How many times as long it takes where others load the network by `load`; more than 1 counts as 1."""
        return 1 + min(load, 1.0) * self.sensitivity(remote=remote)

    def traffic(self, *, remote: bool) -> float:
        """The load that one of its GPUs puts on the network of both machines, or of its own if it is local."""
        return self.alone if remote else self.local


NEUTRAL = NetworkProfile(0.0, 0.0)
"""Of an application that nobody has measured: it neither sends nor minds."""


class OnMachine(Protocol):
    """A process of a job, such as a `HostShare`."""

    @property
    def machine(self) -> int:
        """The number of its machine."""
        ...


def traffic(
    profile: NetworkProfile,
    gpus: Sequence[int],
    shares: Sequence[OnMachine],
    remote: Sequence[int],
    machine_of: Sequence[int],
) -> Iterator[tuple[int, float]]:
    """(machine, load) of every GPU of a job, remote ones at both ends; a machine may come several times."""
    for task, gpu in enumerate(gpus):
        far = gpu in remote
        host = shares[task * len(shares) // len(gpus)].machine if shares else machine_of[gpu]
        yield host, profile.traffic(remote=far)
        if far:
            yield machine_of[gpu], profile.traffic(remote=True)
