"""The utility of a placement, as Amaral et al. (SC'17, section 4.3) mean it: eq. 1 with the parts of eq. 3 to 5.

Where the paper is ambiguous or contradicts itself, these are the readings taken:

- Eq. 2, U = a/t + b/I + c/omega, rewards interference (I of eq. 4 is solo over collocated time, 1 for none, so 1/I
  grows with it), divides by zero for one GPU (t = 0) and for a full machine (omega = 0), and is not in [0, 1], where
  the thresholds of Table 1 are. Eq. 1 has none of these faults. So U = 1 - (what eq. 1 minimises), every part
  normalised to [0, 1]: 1 is ideal, 0 the worst case in all parts.
- t is normalised between the least and the most it can be for this job on one of the topology's machines: three
  GPUs of two sockets cannot do better than 1 + 20 + 20 and lose nothing by it. Across machines it counts as the
  worst case where the job would fit on one; where it would not, it is relative to the idle cluster.
- The interference part is 1 - I, relative to the worst that this kind of job is known to suffer or to cause. Of the job
  itself, the solo time in eq. 4 is that of its best placement (section 5.1: "optimal", not "on these GPUs"), so a job
  that needs NVLink loses more by being spread than one that hardly talks.
- Of omega, the average over all sockets of the cluster does not depend on the choice, as all free GPUs count alike: so
  the sockets of the machines the job lands on are averaged, and a socket that is free altogether is not fragmented (the
  published code has it so for machines). So GPUs come "from the most fragmented domains", as section 4.3 wants.
- What is compared with `min_utility` is the utility of the job: its own communication, and the interference it
  suffers, their weights scaled to sum to 1. Fragmentation and the harm to others belong to the system and decide
  between placements. A pair of GPUs on different sockets is then below 0.5 for every job that is slower there, and a
  single GPU never below 0.5: what the thresholds 0.5 and 0.3 of Table 1 do in Fig. 8. (Without a profile it is
  unknown which jobs are slower, and such a pair is at 0.5.)
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
    """The costs of a placement, part by part."""

    num_gpus: int
    communication: float
    """Eq. 3."""
    least: float
    """The least communication cost this job can have on one machine."""
    most: float
    """The most."""
    suffered: float
    """Solo over collocated time of the job itself, 0..1; 1 for no interference."""
    shared: float
    """Eq. 4: the mean of that over the job and those it shares a socket with."""
    worst: float
    """The least such ratio known of this kind of job."""
    fragmentation: float
    """Eq. 5, 0..1, over the machines of the placement, once it is taken."""

    @property
    def communication_share(self) -> float:
        """The position of the communication cost between the least and the most, 0..1."""
        span = self.most - self.least
        return min(max((self.communication - self.least) / span, 0.0), 1.0) if span > 0 else 0.0

    def interference_share(self, ratio: float) -> float:
        """Return the loss of a ratio, such as `suffered`, relative to the worst known, 0..1."""
        return min((1 - ratio) / (1 - self.worst), 1.0) if self.worst < 1 else 0.0


@runtime_checkable
class Formula(Protocol):
    """Makes a utility of 0..1 from costs; 1 is ideal."""

    def job(self, costs: Costs) -> float:
        """Return the utility to the job: `JobGraph.min_utility` is compared with it."""
        ...

    def system(self, costs: Costs) -> float:
        """Return the utility to all jobs: it decides between placements."""
        ...


@dataclass(frozen=True, slots=True)
class Utility:
    """Eq. 1 as a utility, with the weights of its three parts; ValueError unless they are from 0 and sum to 1."""

    communication: float = 1 / 3
    interference: float = 1 / 3
    fragmentation: float = 1 / 3

    def __post_init__(self) -> None:
        for name in ("communication", "interference", "fragmentation"):
            _checks.real(getattr(self, name), name, ValueError, high=1.0)
        total = self.communication + self.interference + self.fragmentation
        if abs(total - 1) > _TOLERANCE:
            raise ValueError(f"the weights of the utility sum to {total:g}, not 1")

    def job(self, costs: Costs) -> float:
        """Return 1 minus the job's own losses: communication, and the interference it suffers."""
        own = self.communication + self.interference
        if own <= 0:
            return 1.0
        lost = self.communication * costs.communication_share
        lost += self.interference * costs.interference_share(costs.suffered)
        return 1 - lost / own

    def system(self, costs: Costs) -> float:
        """Return 1 minus eq. 1: communication, interference suffered and caused, fragmentation."""
        lost = self.communication * costs.communication_share
        lost += self.interference * costs.interference_share(costs.shared)
        return 1 - lost - self.fragmentation * costs.fragmentation


def communication_cost(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return eq. 3: the sum of the path distances between the GPUs of the job's edges, each times the edge's weight.

    For tasks that all talk alike (`JobGraph.clique`, what the paper's jobs are) the sum over all pairs of GPUs.
    """
    return communication_cost_from(job.edges, gpus, rows_under(job.edges, gpus, topology.distance))


def communication_cost_from(
    edges: Iterable[tuple[int, int, float]], gpus: Sequence[int], distance: Rows[float]
) -> float:
    """`communication_cost` from a table of distances that holds at least the pairs under `edges`."""
    return sum(weight * distance[gpus[a]][gpus[b]] for a, b, weight in edges)
