"""Rules of vector bin packing, and those that count GPUs, with which FGD is compared (ATC'23, section 6)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace_lab.sharing.sharing_policy import SharingPolicy

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace_lab.sharing.ranked_machines import Machines

Vectors = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(n,) free CPUs and (n,) free GPUs, as shares of the largest machine."""


class VectorPolicy(SharingPolicy):
    """Base of rules that compare a job's needs with what is left of a machine's CPUs and GPUs.

    CPUs and GPUs are shares of those of the cluster's largest machine. If a cluster's hosts are unknown, only GPUs
    count.
    rounded: True rounds scores down to hundredths, as the simulator of FGD's authors does; ties go to the lowest
    machine. False compares exact scores.
    in_order: True lets no job start before an older one that waits.
    """

    def __init__(self, *, rounded: bool = True, in_order: bool = False) -> None:
        self.rounded = _checks.flag(rounded, "rounded", ValueError)
        self.out_of_order = not _checks.flag(in_order, "in_order", ValueError)

    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return the score of each machine, 0..1."""
        most_cpus, most_gpus = _largest(view)
        cpus = max(request.whole_job[0], 0) / most_cpus
        gpus = request.size * request.share / most_gpus
        free_cpus = (
            machines.millicpus / most_cpus if view.cluster.hosts.resources else np.zeros(len(machines.left))
        )
        scores = self.compare((cpus, gpus), (free_cpus, machines.left.sum(axis=1) / most_gpus))
        return np.floor(scores * 100 + _EPSILON) / 100 if self.rounded else scores

    @abstractmethod
    def compare(self, needed: tuple[float, float], free: Vectors) -> NDArray[np.float64]:
        """Return the score of each machine, 0..1; larger is better. needed: CPUs and GPUs, like `free`."""


class DotProduct(VectorPolicy):
    """Takes the machine whose free CPUs and GPUs have the smallest inner product with the job's needs.

    The authors of FGD normalise both by the largest machine, and take the *smallest* product; vector bin packing
    usually takes the largest.
    """

    name = "dot-product"

    def compare(self, needed: tuple[float, float], free: Vectors) -> NDArray[np.float64]:
        """Return 1 minus half the inner product."""
        return 1 - (needed[0] * free[0] + needed[1] * free[1]) / 2


class VectorBestFit(VectorPolicy):
    """Takes the machine on which the job leaves the smallest mean of free CPUs and GPUs."""

    name = "vector-best-fit"

    def compare(self, needed: tuple[float, float], free: Vectors) -> NDArray[np.float64]:
        """Return 1 minus the mean of what is left."""
        return 1 - (free[0] - needed[0] + free[1] - needed[1]) / 2


class VectorWorstFit(VectorPolicy):
    """Takes the machine on which the job leaves the largest mean of free CPUs and GPUs."""

    name = "vector-worst-fit"

    def compare(self, needed: tuple[float, float], free: Vectors) -> NDArray[np.float64]:
        """Return the mean of what is left."""
        return (free[0] - needed[0] + free[1] - needed[1]) / 2


class GpuPacking(SharingPolicy):
    """Takes used GPUs first, then free GPUs of used machines, then free machines, like FGD's authors' simulator.

    Among used GPUs, the job takes those with the least left; among free GPUs, it goes where it needs the fewest. Among
    free machines, it takes those with the fewest GPUs.
    """

    name = "gpu-packing"
    sees_gpu_use = True
    sees_cpus = False

    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return the score of each machine: 50 to 100 on used GPUs, 33 to 50 on free ones of used machines."""
        if not request.size:
            return np.zeros(len(machines.left))
        states = self.conditions(view).states(machines.conditions)
        is_free = np.array([not state.is_used for state in states])
        num_free = (machines.left == WHOLE_GPU).sum(axis=1)
        on_free_machine = np.maximum(33 - num_free, num_free)
        able: NDArray[np.int64] = np.where(machines.left >= request.share, machines.left, _UNUSABLE)
        left: NDArray[np.int64] = np.sort(able, axis=1)[:, : request.size]
        fresh = (left == WHOLE_GPU).sum(axis=1)
        on_used_machine = np.maximum(50 - fresh, 33)
        on_used_gpus = np.maximum(100 - (left // 10).sum(axis=1) // 10, 50)
        scores = np.array(np.where(fresh > 0, on_used_machine, on_used_gpus), dtype=np.float64)
        scores[is_free] = on_free_machine[is_free]
        return scores


_UNUSABLE: Final = 10**6
_EPSILON: Final = 1e-9
"""Makes 0.29 count as 29 hundredths, whatever its last bit."""


def _largest(view: ClusterView) -> tuple[int, int]:
    """Return the most thousandths of CPUs and of GPUs of any machine."""
    capacity = view.cluster.hosts.capacity
    gpus = max(one.num_gpus for one in view.classes.classes) * WHOLE_GPU
    return max(int(capacity[:, 0].max(initial=0)), 1), gpus
