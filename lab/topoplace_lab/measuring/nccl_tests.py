"""Run `all_reduce_perf` of nccl-tests among GPUs of this host, and return the bus bandwidth that it prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.live import programs
from topoplace.discovery.live.programs import NotHereError
from topoplace.discovery.measurements import p2p_and_nccl_tests
from topoplace.errors import TopologyError

_SIZES = 8
"""The largest message divided by the smallest; each size is twice the one before."""
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class AllReducePerf:
    """The settings of `all_reduce_perf`; ValueError names a wrong argument.

    NCCL uses rings, as `collective.ring_bandwidth` rates them, unless the environment has another NCCL_ALGO.
    """

    program: str = "all_reduce_perf"
    """Name of the program on the PATH, or its path."""
    largest_mib: int = 1024
    """The largest message, in MiB; the smallest is an eighth of it."""
    timeout_s: float = 300.0
    """Time limit for one run, seconds."""

    def __post_init__(self) -> None:
        _checks.text(self.program, "program", ValueError)
        _checks.integer(self.largest_mib, "largest_mib", ValueError, low=1, high=1 << 20)
        _checks.positive(self.timeout_s, "timeout_s", ValueError, high=1e6)

    @property
    def installed(self) -> bool:
        """Return True if the program is found."""
        return programs.found(self.program) is not None

    def bus_bandwidth(self, gpus: Sequence[int]) -> float:
        """Return the highest bus bandwidth of an all-reduce among `gpus` over the sizes of messages, GB/s.

        gpus: in the order in which the program sees them, by their numbers in PCI order. Raise NotHereError if the
        program is not installed, fails, does not end in time, or prints no bus bandwidth of these GPUs.
        """
        largest = self.largest_mib * _MEBIBYTE
        arguments = ("-b", largest // _SIZES, "-e", largest, "-f", 2, "-g", len(gpus))
        variables = {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
            "NCCL_ALGO": os.environ.get("NCCL_ALGO", "Ring"),
        }
        printed = programs.output(self.program, [str(one) for one in arguments], self.timeout_s, variables)
        try:
            num_gpus, gb_per_s = p2p_and_nccl_tests.bus_bandwidth(printed)
        except TopologyError as error:
            raise NotHereError(str(error)) from None
        if num_gpus != len(gpus):
            raise NotHereError(f"measured {num_gpus} GPUs instead of {len(gpus)}")
        return gb_per_s
