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
    """Two measurements of how an application with remote GPUs depends on the network (Amaral's thesis, section 3.3).

    Computation takes equally long in both cases: (1 - s) T = (1 - s') T'. A full network therefore slows the
    application down by T' / T = (1 - s) / (1 - s'). For lower loads, the slowdown is assumed to be linear in the load.

    Args:
        alone: Share s of the run time T that is spent in communication on an idle network.
        contended: The same share s' of the run time T' on a network that another program fills.

    Raises:
        ValueError: A share is not in 0 to 0.99, `contended` is below `alone`, or `local` is above `alone`.
    """

    alone: float
    contended: float
    local: float = 0.0
    """Share of the run time spent in network communication if all GPUs are local; sensitivity is proportional to it."""

    def __post_init__(self) -> None:
        _checks.real(self.alone, "alone", ValueError, high=0.99)
        _checks.real(self.contended, "contended", ValueError, high=0.99)
        _checks.real(self.local, "local", ValueError, high=max(self.alone, 0.0))
        if self.contended < self.alone:
            raise ValueError(f"contended = {self.contended}: must be at least alone = {self.alone}")

    def sensitivity(self, *, remote: bool) -> float:
        """Return the extra run time on a full network as a fraction of the run time on an idle one; 0 means none.

        Args:
            remote: True if the job uses remote GPUs.
        """
        full = (1 - self.alone) / (1 - self.contended) - 1
        return full if remote else full * self.local / self.alone if self.alone else 0.0

    def slowdown(self, load: float, *, remote: bool) -> float:
        """Return the run time divided by that on an idle network, if other jobs cause the network load `load`.

        Loads above 1 count as 1.

        Args:
            remote: True if the job uses remote GPUs.
        """
        return 1 + min(load, 1.0) * self.sensitivity(remote=remote)

    def traffic(self, *, remote: bool) -> float:
        """Return the network load that one GPU of the job causes; a remote GPU causes it at both ends.

        The ends are the machine of the GPU and the machine of its process.
        """
        return self.alone if remote else self.local


NEUTRAL = NetworkProfile(0.0, 0.0)
"""The profile of an unmeasured application, which sends nothing and is never slowed down."""


class OnMachine(Protocol):
    """Protocol of an object that states the machine of a process, such as a `HostShare`."""

    @property
    def machine(self) -> int:
        """Return the number of the machine on which the process runs."""
        ...


def traffic(
    profile: NetworkProfile,
    gpus: Sequence[int],
    shares: Sequence[OnMachine],
    remote: Sequence[int],
    machine_of: Sequence[int],
) -> Iterator[tuple[int, float]]:
    """Yield (machine, load) for the traffic of every GPU of a job; machines may repeat.

    A GPU loads the network of its process's machine; a remote GPU also loads that of its own machine. gpus: the GPU of
    each task. shares: the machine of each process; if empty, processes are next to their GPUs. remote: the remote GPUs.
    machine_of: the machine of each GPU of the cluster.
    """
    away = frozenset(remote)
    for task, gpu in enumerate(gpus):
        far = gpu in away
        host = shares[task * len(shares) // len(gpus)].machine if shares else machine_of[gpu]
        yield host, profile.traffic(remote=far)
        if far:
            yield machine_of[gpu], profile.traffic(remote=True)
