"""Fragmentation gradient descent: the placement after which typical jobs can use most of what is left (ATC'23)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace_lab.policies.fragmentation.domain_fragments import DomainFragments, RankedByDomain
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.sharing.fragments import fragments_model
from topoplace_lab.sharing.sharing_policy import Room, SharingPolicy

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace_lab.sharing.ranked_machines import Machines

_UNKNOWN = TypicalJobs(
    {
        JobGraph.independent(1).with_(gpu_fraction=0.5): 1,
        JobGraph.independent(1): 4,
        JobGraph.independent(2): 2,
        JobGraph.independent(4): 1,
        JobGraph.independent(8): 1,
    }
)


class FragmentationGradientDescent(SharingPolicy):
    """FGD (Weng et al., USENIX ATC'23): a job goes where the expected fragment grows least, or shrinks most.

    The fragment of a machine for one typical job is all that is left of its GPUs, if the job does not fit. If it fits,
    the fragment is what is left of GPUs too full for one of its tasks (section 3 of the paper). The expected fragment
    is the mean over the typical jobs. The score is logistic(fragment before - after), in GPUs.

    If typical jobs, or groups of their tasks, must be in one domain of a level, that level's domains have fragments,
    too (`DomainFragments`). A machine is then rated by the sum of its own score and those of its domains.

    Args:
        typical: The jobs that are common on the cluster, such as `TypicalJobs.of(workload.jobs)`. None means jobs of
            half a GPU and of 1, 2, 4 and 8 GPUs.
        rounded: True rounds scores down to hundredths, as the authors' simulator does; ties go to the lowest machine.
            False compares exact scores.
    """

    name = "fgd"
    score_name = "fragmentation_score"
    stranded: ClassVar[float] = 0.0
    """The weight of GPUs stranded by a lack of CPUs, in addition to the fragment."""

    def __init__(self, *, typical: TypicalJobs | None = None, rounded: bool = True) -> None:
        if typical is not None:
            _checks.instance(typical, TypicalJobs, "typical", ValueError)
        self.typical = typical or _UNKNOWN
        self.rounded = _checks.flag(rounded, "rounded", ValueError)

    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return the score of the best placement of the job on each machine."""
        return self._steps(request, view, machines.classes, machines.millicpus, machines.left)[0]

    def _new_options(self, request: JobRequest, view: ClusterView) -> Any:
        ranked = super()._new_options(request, view)
        domains = view.table((self, DomainFragments), lambda: DomainFragments(self.typical, view))
        if not domains or not request.size:
            return ranked
        return RankedByDomain(ranked, partial(domains.scores, request.share, self.conditions(view)))

    def pick(self, request: JobRequest, room: Room, view: ClusterView) -> tuple[int, ...]:
        """Return the GPU whose sharing gives the best score, and for other jobs the lowest ones."""
        if request.size != 1 or request.share == WHOLE_GPU:
            return super().pick(request, room, view)
        left = np.array([room.state.left], dtype=np.int32)
        left[0, [gpu for gpu in range(left.size) if not room.able >> gpu & 1]] = 0
        classes = np.array([view.classes.classes.index(room.machine_class)], dtype=np.int32)
        _, gpus = self._steps(request, view, classes, np.array([room.state.millicpus]), left)
        return (int(gpus[0]),)

    def _steps(
        self,
        request: JobRequest,
        view: ClusterView,
        classes: NDArray[np.int32],
        free_cpus: NDArray[np.int64],
        left: NDArray[np.int32],
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the score of each machine, and the GPU that gives it if the job shares one, else -1."""
        cpus = max(request.whole_job[0], 0)
        model = view.table(
            (self, FragmentationGradientDescent), lambda: fragments_model(self.typical, view, self.stranded)
        )
        return model.best_steps(classes, free_cpus, left, cpus, request.size, request.share, self.rounded)


class LeastStranded(FragmentationGradientDescent):
    """FGD that also keeps CPUs for the remaining GPUs, and so fills clusters further than FGD alone.

    A fragment is all or nothing: while one more typical job fits, FGD ignores that a machine's CPUs run out before its
    GPUs. This policy adds stranded GPUs. They are those that remain if a machine runs as many jobs of one typical kind
    as its CPUs allow. Their mean over the typical jobs with GPUs counts like the fragment.

    Args:
        typical: Same as for FGD.
        rounded: Same as for FGD, but False by default.
    """

    name = "least-stranded"
    stranded = 1.0

    def __init__(self, *, typical: TypicalJobs | None = None, rounded: bool = False) -> None:
        super().__init__(typical=typical, rounded=rounded)
