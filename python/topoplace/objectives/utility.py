"""The utility of a placement by eq. 1 of Amaral et al. (SC'17, section 4.3), with the parts of eq. 3 to 5.

The parts are t, the communication cost (eq. 3), I, the interference (eq. 4), and omega, the fragmentation (eq. 5). The
paper is ambiguous or contradicts itself in some points. We read them as follows:

- Eq. 2, U = a/t + b/I + c/omega, has three faults. It rewards interference: I is the solo run time divided by the
  collocated run time, so 1/I grows with interference. It divides by zero for one GPU (t = 0) and for a full machine
  (omega = 0). Its values are not in [0, 1], as the thresholds of Table 1 are. Eq. 1 has none of these faults. So U is 1
  minus the objective of eq. 1, with every part normalised to [0, 1]: 1 is ideal, and 0 is the worst case in all parts.
- t is normalised between the lowest and the highest value of this job on one of the topology's machines. For example,
  three GPUs of a machine with two GPUs per socket cost at least 1 + 20 + 20, which counts as no loss. A placement
  across machines counts as the worst case if the job would fit on one machine. If it would not, t is relative to the
  idle cluster.
- The interference part is 1 - I, relative to the worst that jobs of this name and size are known to suffer or cause.
  For the job itself, the solo run time in eq. 4 is that of its best placement (section 5.1: "optimal", not "on these
  GPUs"). So a job that needs NVLink loses more by being spread than a job that communicates little.
- For omega, the average over all sockets of the cluster would not depend on the placement, as all free GPUs count
  equally. So we average over the sockets of the job's machines. A socket without busy GPUs counts as not fragmented
  (the published code does this for machines). GPUs then come "from the most fragmented domains", as section 4.3
  demands.
- `min_utility` is compared with the utility to the job, which counts its own communication and the interference it
  suffers, with weights scaled to sum to 1. Fragmentation and the interference that other jobs suffer belong to the
  system utility, which decides between placements. The utility to the job of a pair of GPUs on different sockets is
  then below 0.5 for every job that is slower there; on a single GPU it is never below 0.5. This is how the thresholds
  0.5 and 0.3 of Table 1 act in Fig. 8. Without a profile it is unknown which jobs are slower, and such a pair has
  utility 0.5.

Other readings are options: `PrintedUtility` is eq. 2 as printed, `AuthorsUtility` as coded;
`Utility(literal_fragmentation=)` is eq. 5 to the letter; `Utility(heaviest=)` keeps the weights of batch sizes, which
cancel otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from topoplace import _checks

if TYPE_CHECKING:
    pass

_TOLERANCE: Final = 1e-9


class Costs(NamedTuple):
    """The communication, interference and fragmentation costs of a placement, with values to compare them with."""

    num_gpus: int
    communication: float
    """Communication cost: sum of weight times distance over the job's edges (eq. 3)."""
    least: float
    """Lowest communication cost of this job on one machine, or on the idle cluster if it fits on no machine."""
    most: float
    """Highest communication cost of this job on one machine, or on the idle cluster if it fits on no machine."""
    suffered: float
    """The job's best solo run time divided by its run time here, next to other jobs, 0..1; 1 means no loss."""
    shared: float
    """Mean of this ratio of run times over the job and the jobs that share a socket with it, 0..1 (eq. 4)."""
    worst: float
    """Lowest known ratio of run times of a job of this name and size, or of a job next to it (`worst_ratio`)."""
    fragmentation: float
    """Fragmentation of the placement's machines after it is allocated, 0..1 (eq. 5)."""
    disturbed: float = 1.0
    """Lowest ratio of run times (alone on these GPUs over next to this job) of a job that shares a socket with it."""
    weight: float = 1.0
    """Mean weight of the job's edges."""
    unused: float = 0.0
    """Mean share of free GPUs over the sockets of the placement's machines after it is allocated, 0..1."""

    @property
    def communication_share(self) -> float:
        """Return the communication cost scaled to 0..1: 0 at `least` or below, 1 at `most` or above.

        It is 0 if `least` and `most` are equal.
        """
        span = self.most - self.least
        return min(max((self.communication - self.least) / span, 0.0), 1.0) if span > 0 else 0.0

    def interference_share(self, ratio: float) -> float:
        """Return the interference loss scaled to 0..1: 0 at ratio 1 (no interference), 1 at the ratio `worst` or below.

        The result is always 0 if `worst` is 1.

        Args:
            ratio: The ratio to scale, `suffered` or `shared`.
        """
        return min((1 - ratio) / (1 - self.worst), 1.0) if self.worst < 1 else 0.0


@runtime_checkable
class Formula(Protocol):
    """A formula that computes utilities from the costs of a placement; 1 is ideal, 0 the worst."""

    def job(self, costs: Costs) -> float:
        """Return the utility to the job itself, which is compared with `JobGraph.min_utility`."""
        ...

    def system(self, costs: Costs) -> float:
        """Return the utility to the whole system; placements are compared by it."""
        ...


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility 1 minus the objective of eq. 1, with the weights of its three parts.

    Args:
        heaviest: The mean edge weight of the job that communicates most in the mix, such as 4 for the weights 4 to 1 of
            SC'17. A job's communication then counts by its own mean edge weight divided by this one, at most 1. None:
            the weights of a job's edges cancel, as its worst case has the same ones.
        literal_fragmentation: Eq. 5 to the letter: sockets whose GPUs are all free count as fragmented like others.

    Raises:
        ValueError: A weight is below 0, the weights do not sum to 1, or `heaviest` is not above 0.
    """

    communication: float = 1 / 3
    interference: float = 1 / 3
    fragmentation: float = 1 / 3
    heaviest: float | None = None
    literal_fragmentation: bool = False

    def __post_init__(self) -> None:
        for name in ("communication", "interference", "fragmentation"):
            _checks.real(getattr(self, name), name, ValueError, high=1.0)
        total = self.communication + self.interference + self.fragmentation
        if abs(total - 1) > _TOLERANCE:
            raise ValueError(f"the weights of the utility sum to {total:g}: must be 1")
        if self.heaviest is not None:
            _checks.positive(self.heaviest, "heaviest", ValueError)
        _checks.flag(self.literal_fragmentation, "literal_fragmentation", ValueError)

    def job(self, costs: Costs) -> float:
        """Return the utility to the job: 1 minus its weighted losses by communication and by suffered interference.

        The two weights are scaled to sum to 1; if both are 0, the utility is 1.
        """
        _checks.instance(costs, Costs, "costs", ValueError)
        own = self.communication + self.interference
        if own <= 0:
            return 1.0
        lost = self.communication * self._communication(costs)
        lost += self.interference * costs.interference_share(costs.suffered)
        return 1 - lost / own

    def system(self, costs: Costs) -> float:
        """Return the utility to the system: 1 minus the weighted losses of eq. 1.

        The losses are by communication, by interference that the job suffers and causes, and by fragmentation.
        """
        _checks.instance(costs, Costs, "costs", ValueError)
        lost = self.communication * self._communication(costs)
        lost += self.interference * costs.interference_share(costs.shared)
        fragmentation = costs.unused if self.literal_fragmentation else costs.fragmentation
        return 1 - lost - self.fragmentation * fragmentation

    def _communication(self, costs: Costs) -> float:
        share = costs.communication_share
        return share if self.heaviest is None else share * min(costs.weight / self.heaviest, 1.0)
