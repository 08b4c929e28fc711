"""Count the remaining GPUs of a cluster that typical jobs cannot use (FGD, USENIX ATC'23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.jobs.requirements import WHOLE_GPU

if TYPE_CHECKING:
    from topoplace._core import Fragmentation
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.sharing.expected_fragmentation import TypicalJobs


def fragments_model(typical: TypicalJobs, view: ClusterView, stranded: float = 0.0) -> Fragmentation:
    """Return the native model of typical jobs on the machines of a cluster.

    stranded: the weight of GPUs stranded by a lack of CPUs, in addition to the fragment.
    """

    def suits(job: JobGraph) -> list[bool]:
        request = view.request(job)
        return [request.suitable(one) != 0 for one in view.classes.classes]

    return typical.model(suits, stranded)


def gpus_left(cluster: Cluster, typical: TypicalJobs) -> tuple[float, float]:
    """Return the GPUs left on a cluster, and the expected fragment: those that a typical job cannot use.

    Both are numbers of GPUs, with shares as fractions. The fragment of a machine for one typical job is all that is
    left of its GPUs, if the job does not fit. If it fits, the fragment is what is left of GPUs too full for one of its
    tasks (section 3 of the paper). The expected fragment is the mean over the typical jobs.
    """
    view = cluster.view(ClusterView)
    conditions = view.conditions(Sight(shares=True, cpus=True)).native
    numbers, counts = np.unique(conditions.of_machines(), return_counts=True)
    classes, millicpus, left = conditions.left_of(numbers.tolist())
    model = view.table((typical, "fragments"), lambda: fragments_model(typical, view))
    fragment = float(model.expected(classes, millicpus, left) @ counts)
    return int(left.sum(axis=1) @ counts) / WHOLE_GPU, fragment / WHOLE_GPU
