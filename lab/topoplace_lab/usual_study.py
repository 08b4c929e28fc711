"""The default jobs, queue and run times of simulations.

`topoplace simulate` and `sweep`, the page of `explore` and `make demo` all take them from here, so that they agree.
"""

from __future__ import annotations

from typing import Final

from topoplace import machines
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.topology import Topology
from topoplace_lab.simulate import Workload
from topoplace_lab.suite import cells, workloads

NUM_JOBS: Final = 300
"""The number of jobs of MAPA's mix."""
QUEUE: Final = cells.QUEUE
"""The same queue for all policies, so that only placements differ."""
_MEASURED_ON: Final = "dgx1-v100"
_TRAINING: Final = "parallel"


def jobs(
    topology: Topology, seed: int = 0, num_jobs: int | None = None, *, pattern: str | None = None
) -> Workload:
    """Return the usual jobs of a topology: MAPA's mix, or present-day training on machines with NVSwitches.

    num_jobs: by default 300, or those of a cell of the suite on a cluster. pattern: how the jobs of MAPA's mix
    communicate, by default as rings; ValueError for it on a cluster, whose jobs have patterns of their own.
    """
    if not _is_training(topology):
        return Workload.mapa(num_jobs or NUM_JOBS, seed, pattern="ring" if pattern is None else pattern)
    if pattern is not None:
        raise ValueError(
            f"pattern = {pattern!r}: is for MAPA's mix; on {topology.name}, jobs train in patterns of their own"
        )
    return workloads.drawn(_TRAINING, topology, seed, num_jobs).without(
        "prefer"
    )  # Slurm and Kubernetes prefer none


def measured_on(topology: Topology) -> Topology | None:
    """Return the machine on which the usual jobs' run times were measured; None if they are those of `topology`."""
    return None if _is_training(topology) else machines.get(_MEASURED_ON)


def about(topology: Topology) -> str:
    """Return a sentence on the usual jobs."""
    if _is_training(topology):
        return f"the jobs are the suite's workload {_TRAINING}: {workloads.ABOUT[_TRAINING]}"
    here = topology == machines.get(_MEASURED_ON)
    times = "" if here else f", with the run times of {_MEASURED_ON}: a slowdown below 1 is faster than there"
    return f"the jobs are MAPA's mix, of 1 to 5 GPUs{times}"


def _is_training(topology: Topology) -> bool:
    """Return True for several machines with NVSwitches, where nobody runs jobs as small as those of MAPA's mix."""
    first = topology.gpus_of[topology.machine_names[0]]
    return (
        topology.num_machines > 1 and len(first) > 1 and topology.link(*first[:2]).kind is LinkKind.NVSWITCH
    )
