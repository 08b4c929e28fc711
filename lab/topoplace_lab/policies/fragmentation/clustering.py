"""GPU clustering: jobs of the same kind go together (a rule with which FGD is compared, ATC'23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.jobs.requirements import WHOLE_GPU
from topoplace_lab.sharing.sharing_policy import SharingPolicy

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace_lab.sharing.ranked_machines import Machines


class GpuClustering(SharingPolicy):
    """Takes machines with only jobs of the same kind first, then those with some, then free ones, then the others.

    Jobs that share GPUs are one kind; jobs with the same number of whole GPUs are another. Among equal machines, the
    one with the fewest GPUs left comes first. Steps are 1/25 of the largest machine, as in the simulator of FGD's
    authors.
    """

    name = "gpu-clustering"
    sees_jobs = True
    sees_cpus = False

    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return the score of each machine, 0..100."""
        if not request.size:
            return np.zeros(len(machines.left))
        own = 0 if request.share < WHOLE_GPU else request.size
        states = self.conditions(view).states(machines.conditions)
        base = np.array([_base(own, kinds_on(state)) for state in states], dtype=float)
        most = max(one.num_gpus for one in view.classes.classes) * WHOLE_GPU
        left = machines.left.sum(axis=1)
        fullness: NDArray[np.float64] = base + 25 * (most - left) // most
        return fullness


def kinds_on(state: MachineState) -> set[int]:
    """Return the kinds of the jobs on a machine: 0 for jobs that share GPUs, else the number of GPUs."""
    return {0 if one.gpu_fraction < 1 else one.num_tasks for one in state.neighbours}


def _base(own: int, kinds: set[int]) -> int:
    if own in kinds:
        return 75 if len(kinds) == 1 else 50
    return 0 if kinds else 25
