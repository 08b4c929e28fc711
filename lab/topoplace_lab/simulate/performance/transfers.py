"""The amounts of data that a job sends: between GPUs of one machine, and between its machines."""

from __future__ import annotations

from dataclasses import dataclass, fields

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER


@dataclass(frozen=True, slots=True)
class Transfers:
    """The data that one node of a job sends during the whole run, and the number of transfers (TSUBAME, Table 1).

    A node is the part of the job on one machine; 1 GB is 1e9 bytes.

    Raises:
        ValueError: If an amount is negative, not finite or above 1e15.
    """

    network_gb: float = 0.0
    """GB to other nodes ("net data size")."""
    network_connections: float = 0.0
    """Number of transfers to other nodes, each with the network's latency ("net conn times")."""
    gpu_gb: float = 0.0
    """GB between GPUs of the same node ("gpu data size")."""
    gpu_connections: float = 0.0
    """Number of copies between GPUs of the same node ("gpu conn times")."""

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = _checks.real(getattr(self, field.name), field.name, ValueError, high=MAX_NUMBER)
            object.__setattr__(self, field.name, amount)
