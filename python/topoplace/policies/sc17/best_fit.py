"""Best fit (bin packing of jobs into sockets), the second policy with which SC'17 compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal

from topoplace import _checks
from topoplace.engine.gangs.splits import in_order, smallest_first
from topoplace.engine.machines.machine_class import mask_of, members
from topoplace.policies.sc17.costs import UtilityPolicy
from topoplace.policies.sc17.first_come import connected, lowest

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import MachineOffer
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.objectives.utility import Costs, Formula
    from topoplace.policies.sc17.costs import FormulaName


class BestFit(UtilityPolicy):
    """Bin packing with sockets as bins (SC'17, section 5.2).

    The paper has one sentence: "bin packing (i.e. allocating first the GPUs from highly used domains)". `reading`
    chooses its meaning for a job of several GPUs:

    - "sockets", the default, packs whole jobs. A job goes to the socket that it leaves with the fewest free GPUs; ties
      go to the machine with the fewest free GPUs, then to the lowest machine number. If no socket has room for the
      whole job, it gets the most used sockets of a machine.
    - "domains" is the sentence to the letter. A job goes to the machine that it leaves with the fewest free GPUs. It
      gets GPUs of the most used sockets first, even if that splits two GPUs for which one socket has room. With it, the
      published list of 100 jobs on 5 machines has the paper's order of policies.

    If no machine has room, the job is split over those that offer the fewest GPUs. Jobs are tried in order of
    submission; a job that does not fit does not block younger ones. Other arguments are those of `UtilityPolicy`.

    Raises:
        ValueError: `reading` has another value.
    """

    name = "best-fit"

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | FormulaName | None = None,
        memory_bandwidth: float | None = None,
        reading: Literal["sockets", "domains"] = "sockets",
    ) -> None:
        super().__init__(profile=profile, utility=utility, memory_bandwidth=memory_bandwidth)
        self.reading = _checks.one_of(reading, "reading", ("sockets", "domains"), ValueError)

    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the candidate GPU choices on one machine: the lowest free GPUs of each socket with enough of them.

        If no socket has enough, or with the reading "domains", the only candidate takes the sockets with the fewest
        free GPUs first. On a machine with fixed partitions, each free partition of the job's size is a candidate.
        """
        if machine_class.partitions:
            return [lowest(request, machine_class, region) for region in request.regions(machine_class, free)]
        sockets = sorted((free & socket for socket in machine_class.sockets), key=int.bit_count)
        whole = [
            lowest(request, machine_class, socket) for socket in sockets if socket.bit_count() >= request.size
        ]
        if whole and self.reading == "sockets":
            return whole
        fullest_first = (gpu for socket in sockets for gpu in members(socket))
        return [connected(request, machine_class, free, tuple(islice(fullest_first, request.size)))]

    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return the sort key of a choice, smaller is better; `free`: GPUs left on the machine afterwards.

        GPUs of one socket come first, then the fewest GPUs left on the used sockets, then the fewest on the machine.
        With the reading "domains", only the last counts.
        """
        if self.reading == "domains":
            return (float(free.bit_count()),)
        touched = [socket for socket in machine_class.sockets if socket & mask_of(gpus)]
        left = sum((free & socket).bit_count() for socket in touched)
        return (float(len(touched) > 1), float(left), float(free.bit_count()))

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return at most one split of the job, over the machines that offer the fewest GPUs first."""
        return in_order(smallest_first(offers), request.size, anti_affine=request.job.anti_affinity)
