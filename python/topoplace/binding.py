"""How a placed job starts, as plain values: the binding of each task, environment variables, and a launcher's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Binding:
    """The place of a task: its machine, its GPU, and the CPUs and network adapter near that GPU.

    The last four fields are None if unknown, and for a GPU of another machine (a remote GPU, or one that a pool lends).
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
    """The files with which a placed job starts, and the command that starts it."""

    files: Mapping[str, str]
    """The text of each file by its name."""
    command: str
    """The command to run in the directory with the files: on each machine for torchrun, else once."""


@dataclass(frozen=True, slots=True)
class LaunchDevice:
    """A GPU as its process addresses it: machine, number or UUID, and whether it is remote."""

    machine: str
    """Name of the GPU's machine."""
    device: str
    """Number or UUID of the GPU on that machine."""
    remote: bool
    """True if the process reaches the GPU over the network."""


Environment = dict[str, str]
Servers = Callable[[Sequence[LaunchDevice]], Mapping[str, str]]
"""A function from the devices of a machine's processes, in task order, to environment variables.

The variables give the client of a remote-GPU middleware, such as rCUDA, the addresses of the remote devices. Only the
caller knows these addresses.
"""
