"""Base class of policies that may put several jobs on one GPU, and score all machines at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import shares_on
from topoplace.engine.gangs.splits import in_order
from topoplace.engine.machine_policy import Evaluation, MachinePolicy
from topoplace.engine.machines.machine_class import MachineClass, Mask, mask_of, members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.machines.machine_options import Choice, Option
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.mig import Reslicing
from topoplace.objectives.pair_links import communication_cost
from topoplace.placement import Placement, Scores
from topoplace_lab.sharing.ranked_machines import Machines, RankedForJob

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import MachineOffer
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph


class Room(NamedTuple):
    """The GPUs of one machine from which a job may choose."""

    machine_class: MachineClass
    state: MachineState
    able: Mask
    """The GPUs with enough left, by local number; there is at least one per task."""


class SharingPolicy(MachinePolicy):
    """Base of policies that place jobs with a `gpu_fraction`, with whole GPUs, or with none, on the best machine.

    A rule scores all machines at once by what is left of their GPUs and CPUs. A job goes to the machine of the highest
    score; ties go to the lowest number. A job with whole GPUs takes the lowest free ones, and a job with shares takes
    GPUs with the least left. A job with a MIG profile gets existing slices, unless the policy may reslice GPUs (see
    `with_reslicing`). If no machine has room, or tasks may not share a machine, a job is split over the first machines
    with some room.
    """

    honours = frozenset(("gpu_fraction", "mig"))
    places_without_gpus = True
    sees_jobs = False
    sees_gpu_use: ClassVar[bool] = False
    """True if scores depend on whether a job holds a GPU of a machine, `MachineState.is_used`."""
    sees_cpus: ClassVar[bool] = True
    """True if scores depend on the free CPUs of machines. If not, set it to False: decisions are faster."""
    score_name: ClassVar[str] = "score"
    """The name of the rule's score in `Placement.scores`."""

    @abstractmethod
    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return an array (n,): the score of placing the job on each machine; larger is better.

        The scores of machines that lack GPUs or CPUs are ignored.
        """

    def pick(self, request: JobRequest, room: Room, view: ClusterView) -> tuple[int, ...]:
        """Return the GPUs of the job on one machine, by local number; the same in equal rooms, unless `draws_gpus`."""
        if request.share == WHOLE_GPU:
            return tuple(members(room.able))[: request.size]
        left = room.state.left
        return tuple(sorted(members(room.able), key=lambda gpu: (left[gpu], gpu))[: request.size])

    def draws_gpus(self, request: JobRequest) -> bool:
        """Return True if `pick` may differ in equal rooms, so that it is called for each decision."""
        return False

    # ---- what MachinePolicy asks ---------------------------------------------------------------------------

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return nothing: the policy does not ask machine by machine, but rates all of them by `score`."""
        return ()

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return one split of the job over the first machines with free GPUs, or none."""
        return in_order(offers, request.size, anti_affine=request.job.anti_affinity)

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return no utility; None if tasks that communicate have no path between their GPUs."""
        cost = communication_cost(request.job, tuple(gpus), view.cluster.topology)
        return Evaluation(0.0, None) if cost < math.inf else None

    def scores(self, details: Any) -> Mapping[str, float]:
        """Return no further scores for a job on several machines."""
        return {}

    def search_for(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the best placement of a job with this request; a job without GPUs is not split over machines."""
        if request.size:
            return super().search_for(job, request, view, least_utility)
        found = self._machine_options(request, view).best(least_utility)
        return self._placement(job, request, view, *found) if found else None

    # ---- inside --------------------------------------------------------------------------------------------

    def _new_options(self, request: JobRequest, view: ClusterView) -> Any:
        def keys(numbers: Sequence[int]) -> NDArray[np.float64]:
            return self._keys(request, view, numbers)

        def choose(condition: int, key: Sequence[float]) -> Choice:
            return self._choice(request, view, condition, key)

        kept = not self.draws_gpus(request)
        return RankedForJob(self.conditions(view), request.whole_job, keys, choose, keeps_choices=kept)

    def conditions(self, view: ClusterView) -> Conditions:
        """Return the machines' conditions; machines that look equal to this rule have the same one."""
        return view.conditions(
            Sight(jobs=self.sees_jobs, gpu_use=self.sees_gpu_use, shares=True, cpus=self.sees_cpus)
        )

    def _keys(self, request: JobRequest, view: ClusterView, numbers: Sequence[int]) -> NDArray[np.float64]:
        """Return an array (n, 2): (limit on GPU memory, -score) of each condition; infinite where the job does not fit.

        A job goes to GPUs of the smallest memory that suits it if it fits there, else to the next; only if it fits
        nowhere so, GPUs that are cut are resliced, and only then the others.
        """
        classes, free_cpus, now = self.conditions(view).native.left_of(numbers)
        keys = np.full((len(numbers), 2), math.inf)
        for tier, (limit, reslicing) in enumerate(self._tiers(request)):
            left = self._left(request, view, numbers, now, reslicing=reslicing)
            able = left * suitable_gpus(request, view, limit)[classes, : left.shape[1]]
            fits = ((able >= request.share).sum(axis=1) >= request.size) & (keys[:, 0] == math.inf)
            if not fits.any():
                continue
            score = self.score(request, Machines(numbers, classes, free_cpus, able), view)
            keys[fits, 0], keys[fits, 1] = tier, -score[fits]
        if request.job.edges or view.cluster.topology.partitions:
            for row in np.flatnonzero(keys[:, 0] < math.inf).tolist():
                if self._gpus(request, view, numbers[row], int(keys[row, 0])) is None:
                    keys[row] = math.inf
        return keys

    def _tiers(self, request: JobRequest) -> Sequence[tuple[float, Reslicing]]:
        """Return (limit on GPU memory, which GPUs are resliced) of the attempts to place the job, in order."""
        ways = [way for way in Reslicing if way <= self._reslicing and way.serves(request.job.mig)]
        return [(limit, way) for way in ways for limit in request.memory_limits]

    def _left(
        self,
        request: JobRequest,
        view: ClusterView,
        numbers: Sequence[int],
        now: NDArray[np.int32],
        *,
        reslicing: Reslicing,
    ) -> NDArray[np.int32]:
        """Return an array (n, g): the thousandths of each GPU from which the job may choose, by `left_on`.

        now: those that are left without new slices.
        """
        if request.job.mig is None and not (reslicing and view.cluster.sliced_gpus):
            return now
        conditions, left = self.conditions(view), np.zeros_like(now)
        for row, number in enumerate(numbers):
            on_machine = request.left_on(*conditions.of(number), reslicing=reslicing)
            left[row, : len(on_machine)] = on_machine
        return left

    def _gpus(
        self, request: JobRequest, view: ClusterView, condition: int, tier: int
    ) -> tuple[int, ...] | None:
        """Return the GPUs of the job on machines in a condition; None if it does not fit.

        tier: the index in `_tiers`.
        """
        if not request.size:
            return ()
        machine_class, state = self.conditions(view).of(condition)
        limit, reslicing = self._tiers(request)[tier]
        state = state._replace(left=request.left_on(machine_class, state, reslicing=reslicing))
        enough = mask_of(gpu for gpu, left in enumerate(state.left) if left >= request.share)
        suitable = request.suitable(machine_class, limit)
        for region in request.regions(machine_class, enough & suitable):
            gpus = self.pick(request, Room(machine_class, state, region), view)
            if request.communication(machine_class, gpus) == math.inf:
                gpus = request.mapped(machine_class, region)
            if request.communication(machine_class, gpus) < math.inf:
                return gpus
        return None

    def _choice(self, request: JobRequest, view: ClusterView, condition: int, key: Sequence[float]) -> Choice:
        tier, cost = key
        gpus = self._gpus(request, view, condition, int(tier))
        assert gpus is not None
        machine_class, _ = self.conditions(view).of(condition)
        links = request.link_scores(machine_class, gpus) if gpus else {}
        return Choice(Option((tier, cost), gpus, 0.0, None), Scores({**links, self.score_name: -cost}))

    def _placement(
        self, job: JobGraph, request: JobRequest, view: ClusterView, machine: int, choice: Choice
    ) -> Placement:
        if choice.option.gpus:
            return super()._placement(job, request, view, machine, choice)
        hosts = shares_on(job, machine)
        return Placement((), scores=choice.scores, topology=view.cluster.topology, job=job, hosts=hosts)


def suitable_gpus(request: JobRequest, view: ClusterView, most_memory_gb: float) -> NDArray[np.int32]:
    """Return an array (classes, GPUs): 1 for each GPU of a class that the job may use, else 0."""

    def build() -> NDArray[np.int32]:
        classes = view.classes.classes
        suits = np.zeros((len(classes), max(one.num_gpus for one in classes)), dtype=np.int32)
        for number, one in enumerate(classes):
            suits[number, list(members(request.suitable(one, most_memory_gb)))] = 1
        return suits

    return request.table((suitable_gpus, most_memory_gb), build)
