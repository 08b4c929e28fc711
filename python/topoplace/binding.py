"""How a placed job starts, as plain values: the binding of each task, environment variables, and a launcher's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a task runs: its machine, its GPU, and what is near the GPU there.

    The last four fields are None where they are unknown, and for a GPU of another machine, which the task reaches over
    the network or which a pool lends.
    """

    task: int
    machine: str
    """Name of the machine on which the task's process runs."""
    gpu: int
    """The GPU's number in the topology."""
    local_gpu: int | None
    """The number of the GPU among the devices of the machine, which tools and CUDA_VISIBLE_DEVICES use."""
    nic: str | None
    """Name of the nearest network adapter; GPUs with several nearest ones share them evenly."""
    numa: int | None
    """The GPU's NUMA node; the number of its socket replaces an unknown one."""
    cpus: str | None
    """The CPUs near the GPU in Linux notation, such as "0-23,48-71"."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The files with which a placed job starts, and what to type."""

    files: Mapping[str, str]
    """The text of each file by its name."""
    command: str
    """What to type in the directory with the files: on each machine for torchrun, else once."""


@dataclass(frozen=True, slots=True)
class LaunchDevice:
    """A GPU as the process that uses it finds it: machine, number or UUID, and whether it is remote."""

    machine: str
    """Name of the GPU's machine."""
    device: str
    """Number or UUID of the GPU on that machine."""
    remote: bool
    """True if the process reaches the GPU over the network."""


Environment = dict[str, str]
Servers = Callable[[Sequence[LaunchDevice]], Mapping[str, str]]
"""A function from the devices of a machine's processes, in task order, to environment variables.

The variables state where the client of a remote-GPU middleware, such as rCUDA, finds the remote devices. Only the
caller knows these addresses.
"""
