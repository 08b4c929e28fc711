"""Fragmentation over the time of a simulation: the remaining GPUs that typical jobs cannot use."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.sharing.fragments import gpus_left
from topoplace_lab.simulate.metrics import JobRecord, Result

if TYPE_CHECKING:
    from topoplace.cluster.hosts import GivenHosts
    from topoplace_lab.simulate.interruptions import Stay

_COLUMNS = np.dtype([("time", "f8"), ("left", "f8"), ("fragment", "f8")])


def fragmentation_series(
    result: Result, typical: TypicalJobs | None = None, *, hosts: GivenHosts | None = None
) -> NDArray[np.void]:
    """Return a structured array with a row for each time at which jobs of `result` take or release GPUs.

    - time: seconds. A row holds until the time of the next one.
    - left: number of healthy GPUs that are free, with shares as fractions.
    - fragment: the part of them that a typical job cannot use, on average (FGD, section 3).

    Jobs that held their GPUs for no time are left out.

    The function allocates all jobs again, which takes tenths of a millisecond each.

    Args:
        typical: The jobs that are common on the cluster; by default those of the result, `TypicalJobs.of`.
        hosts: CPUs and memory of the machines, as they were given to `simulate`; by default CPUs are unlimited.

    Raises:
        ValueError: Names a wrong argument.
        AllocationError: If the jobs do not fit `hosts`.
    """
    _checks.instance(result, Result, "result", ValueError)
    if typical is not None:
        _checks.instance(typical, TypicalJobs, "typical", ValueError)
    begin: defaultdict[float, list[tuple[JobRecord, Stay]]] = defaultdict(list)
    end: defaultdict[float, list[str]] = defaultdict(list)
    for record in result.records:
        for stay in record.stays:
            if stay.start < stay.end:
                begin[stay.start].append((record, stay))
                end[stay.end].append(record.job_id)
    if not begin:
        return np.empty(0, dtype=_COLUMNS)
    common = typical or TypicalJobs.of([record.job for record in result.records])
    cluster = Cluster(result.topology, hosts)
    rows: list[tuple[float, float, float]] = []
    for time in sorted(begin.keys() | end.keys()):
        for job_id in end.get(time, ()):
            cluster.release(job_id)
        for record, stay in begin.get(time, ()):
            cluster.allocate(record.job_id, stay.placement, record.submitted.on(stay.placement).job)
        rows.append((time, *gpus_left(cluster, common)))
    return np.array(rows, dtype=_COLUMNS)
