"""Reader of the measured run times that the authors of the GPU-as-a-service paper published with a later scheduler."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace.text_formats.csv_rows import number, records
from topoplace_lab.capacity import TABLE_II
from topoplace_lab.capacity.problem.job import MAX_HOURS

_NEEDED: Final = ("Jobs", "GpuType", "GpuNumber", "ExecutionTime")
_MOST_GPUS: Final = 1024


def tables_of(text: str) -> list[NDArray[np.float64]]:
    """Return one array per job: its run time in hours, by VM type of Table II (row) and number of GPUs (column).

    Column k stands for k + 1 GPUs; unknown times are infinite. text: CSV with the columns Jobs (a name), GpuType,
    GpuNumber and ExecutionTime (seconds); others are ignored. Raises ValueError that names a line with a bad value,
    such as a time of 0, or a job without a time on any type of Table II.
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
