"""Reader of the run times that the paper's authors published with a later scheduler."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace.capacity import TABLE_II
from topoplace.capacity.problem.job import MAX_HOURS
from topoplace.text_formats.csv_rows import number, records

_NEEDED: Final = ("Jobs", "GpuType", "GpuNumber", "ExecutionTime")
_MOST_GPUS: Final = 1024


def tables_of(text: str) -> list[NDArray[np.float64]]:
    """Return a table of hours for each job, by type of Table II and number of GPUs; infinite where unknown.

    text: CSV with the columns Jobs (a name), GpuType, GpuNumber and ExecutionTime (seconds), and any others. Raises
    ValueError for a time that is not above 0, naming the line, and for a job without a time on any of those types.
    """
    tables: dict[str, NDArray[np.float64]] = {}
    for line, row in records(text, _NEEDED, None):
        gpus = int(number(row["GpuNumber"], int, line, "GpuNumber", low=1, high=_MOST_GPUS))
        seconds = number(row["ExecutionTime"], float, line, "ExecutionTime", high=MAX_HOURS)
        if not seconds:
            raise ValueError(f"line {line}: ExecutionTime = 0: must be above 0")
        empty = np.full((len(TABLE_II), TABLE_II.max_gpus), math.inf)
        table = tables.setdefault(row["Jobs"], empty)
        for place, vm_type in enumerate(TABLE_II):
            if vm_type.gpu_model == row["GpuType"].strip() and gpus <= vm_type.num_gpus:
                table[place, gpus - 1] = seconds / 3600
    for name, table in tables.items():
        if not np.isfinite(table).any():
            raise ValueError(f"job {name!r} runs on no GPU model of Table II")
    return list(tables.values())
