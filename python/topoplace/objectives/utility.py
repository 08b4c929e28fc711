"""The utility of a placement by eq. 1 of Amaral et al. (SC'17, section 4.3), with the parts of eq. 3 to 5.

The paper is ambiguous or contradicts itself in some points. We read them as follows:

- Eq. 2, U = a/t + b/I + c/omega, has three faults. It rewards interference: I of eq. 4 is solo over collocated time, 1
  for none, so 1/I grows with it. It divides by zero for one GPU (t = 0) and for a full machine (omega = 0). Its values
  are not in [0, 1], as the thresholds of Table 1 are. Eq. 1 has none of these faults. So U is 1 minus the objective of
  eq. 1, with every part normalised to [0, 1]: 1 is ideal, and 0 is the worst case in all parts.
- t is normalised between the least and the largest value of this job on one of the topology's machines. For example,
  three GPUs of two sockets cannot do better than 1 + 20 + 20, and lose nothing by it. A placement across machines
  counts as the worst case if the job would fit on one. If it would not, t is relative to the idle cluster.
- The interference part is 1 - I, relative to the worst that this class of job is known to suffer or cause. For the job
  itself, the solo time in eq. 4 is that of its best placement (section 5.1: "optimal", not "on these GPUs"). So a job
  that needs NVLink loses more by being spread than one that communicates little.
- For omega, the average over all sockets of the cluster would not depend on the placement, as all free GPUs count
  equally. So we average over the sockets of the job's machines, and a socket without busy GPUs is not fragmented (the
  published code does this for machines). GPUs then come "from the most fragmented domains", as section 4.3 demands.
- `min_utility` is compared with the utility of the job: its own communication and the interference it suffers, with
  weights scaled to sum to 1. Fragmentation and the harm to other jobs belong to the system and decide between
  placements. A pair of GPUs on different sockets is then below 0.5 for every job that is slower there, and a single GPU
  never is. This is how the thresholds 0.5 and 0.3 of Table 1 act in Fig. 8. Without a profile it is unknown which jobs
  are slower, and such a pair is at 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from topoplace import _checks
from topoplace.objectives.links import Rows, rows_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_TOLERANCE: Final = 1e-9


class Costs(NamedTuple):
    """The parts of a placement's cost."""

    num_gpus: int
    communication: float
    """Communication cost by eq. 3."""
    least: float
    """Least communication cost of this job on one machine."""
    most: float
    """Largest communication cost of this job on one machine."""
    suffered: float
    """Solo over collocated time of the job itself, 0..1; 1 means no interference."""
    shared: float
    """Eq. 4: the mean of this ratio over the job and the jobs that share a socket with it."""
    worst: float
    """Least such ratio known for this class of job."""
    fragmentation: float
    """Eq. 5, 0..1, over the machines of the placement after it is allocated."""

    @property
    def communication_share(self) -> float:
        """Return the position of the communication cost between `least` (0) and `most` (1)."""
        span = self.most - self.least
        return min(max((self.communication - self.least) / span, 0.0), 1.0) if span > 0 else 0.0

    def interference_share(self, ratio: float) -> float:
        """Return the loss at a ratio such as `suffered`, relative to the loss at the worst known ratio, 0..1."""
        return min((1 - ratio) / (1 - self.worst), 1.0) if self.worst < 1 else 0.0


@runtime_checkable
class Formula(Protocol):
    """A formula that computes a utility of 0..1 from costs; 1 is ideal."""

    def job(self, costs: Costs) -> float:
        """Return the utility to the job, for comparison with `JobGraph.min_utility`."""
        ...

    def system(self, costs: Costs) -> float:
        """Return the utility to all jobs, which decides between placements."""
        ...


@dataclass(frozen=True, slots=True)
class Utility:
    """Eq. 1 as a utility, with weights of its three parts. ValueError unless these are at least 0 and sum to 1."""

    communication: float = 1 / 3
    interference: float = 1 / 3
    fragmentation: float = 1 / 3

    def __post_init__(self) -> None:
        for name in ("communication", "interference", "fragmentation"):
            _checks.real(getattr(self, name), name, ValueError, high=1.0)
        total = self.communication + self.interference + self.fragmentation
        if abs(total - 1) > _TOLERANCE:
            raise ValueError(f"the weights of the utility sum to {total:g}: must be 1")

    def job(self, costs: Costs) -> float:
        """Return 1 minus the job's own losses by communication and by the interference it suffers."""
        own = self.communication + self.interference
        if own <= 0:
            return 1.0
        lost = self.communication * costs.communication_share
        lost += self.interference * costs.interference_share(costs.suffered)
        return 1 - lost / own

    def system(self, costs: Costs) -> float:
        """Return 1 minus eq. 1: losses by communication, interference suffered and caused, and fragmentation."""
        lost = self.communication * costs.communication_share
        lost += self.interference * costs.interference_share(costs.shared)
        return 1 - lost - self.fragmentation * costs.fragmentation


def communication_cost(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return eq. 3: the sum over the job's edges of weight times path distance between their GPUs.

    For tasks that all communicate equally (`JobGraph.clique`, like the paper's jobs) it is the sum over all pairs.
    """
    return communication_cost_from(job.edges, gpus, rows_under(job.edges, gpus, topology.distance))


def communication_cost_from(
    edges: Iterable[tuple[int, int, float]], gpus: Sequence[int], distance: Rows[float]
) -> float:
    """Return `communication_cost` from a table of distances with at least the GPU pairs under `edges`."""
    return sum(weight * distance[gpus[a]][gpus[b]] for a, b, weight in edges)
