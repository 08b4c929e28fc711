"""What a job sends on each of its nodes: between its own GPUs, and to other nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER


@dataclass(frozen=True, slots=True)
class Transfers:
    """The data one node of a job sends while the job runs, and in how many connections (TSUBAME, Table 1).

    GB are 1e9 bytes. ValueError for an amount that is negative, not finite or above 1e15.
    """

    network_gb: float = 0.0
    """To other nodes ("net data size")."""
    network_connections: float = 0.0
    """How often, each at the network's latency ("net conn times")."""
    gpu_gb: float = 0.0
    """From GPU to GPU of the same node ("gpu data size")."""
    gpu_connections: float = 0.0
    """How often ("gpu conn times")."""

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = _checks.real(getattr(self, field.name), field.name, ValueError, high=MAX_NUMBER)
            object.__setattr__(self, field.name, amount)
