"""Run times from computing and from the bandwidth of collective operations among a job's GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from topoplace import _checks, collective
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    import numpy as np

    from topoplace.experiments.simulate.workloads.submitted_job import SubmittedJob
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology


class CollectiveTime:
    """A model of data-parallel training: each step computes, and then adds up gradients by an all-reduce.

        step = compute_s + gigabytes * 2 * (n - 1) / n / bandwidth

    The bandwidth is what NCCL's rings carry among the job's n GPUs (`topoplace.collective.ring_bandwidth`); nothing is
    fitted. A job's base time is that on the best GPUs for n tasks, so its run time is.

        base_time * step(bandwidth of its GPUs) / step(bandwidth of the best n GPUs)

    Over several machines the ports and levels of the network count, too. A job without communication, and one that
    `steps` does not know, takes its base time.

    Args:
        steps: (compute_s, gigabytes) of a step by the neural network that a job trains (its `profile`), both at least
            0, and one of them above.
        default_step: The step of jobs that `steps` does not know; None if they take their base time.
        rates: As in `topoplace.collective`.
    """

    def __init__(
        self,
        steps: Mapping[str, tuple[float, float]],
        *,
        default_step: tuple[float, float] | None = None,
        rates: collective.Rates | str = "nccl-2.30",
    ) -> None:
        _checks.instance(steps, Mapping, "steps", ValueError)
        self.steps = {name: _step(step, f"steps[{_checks.shown(name)}]") for name, step in steps.items()}
        self.default_step = None if default_step is None else _step(default_step, "default_step")
        self.rates = rates
        self._bandwidths: Memo[tuple[Topology, tuple[int, ...]], float] = Memo()

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds; ValueError if rings through the job's GPUs carry nothing."""
        gpus = tuple(sorted(set(placement.gpus)))
        step = self.steps.get(job.job.profile or "", self.default_step)
        if step is None or not job.job.edges or len(gpus) < 2:
            return job.base_time
        own = self._bandwidth(placement.topology, gpus)
        if not own:
            reason = collective.why_no_rings(placement.topology, gpus, rates=self.rates)
            raise ValueError(f"job {job.job_id!r}: {reason}")
        best = max(own, placement.topology.derived(_BestBandwidths).of(len(gpus), self.rates))
        compute_s, gigabytes = step
        sent = gigabytes * 2 * (len(gpus) - 1) / len(gpus)
        return job.base_time * (compute_s + sent / own) / (compute_s + sent / best)

    def _bandwidth(self, topology: Topology, gpus: tuple[int, ...]) -> float:
        if topology.num_machines == 1:
            return collective.ring_bandwidth(topology, gpus, rates=self.rates)
        key = (topology, gpus)
        if key not in self._bandwidths:
            self._bandwidths[key] = collective.ring_bandwidth(topology, gpus, rates=self.rates)
        return self._bandwidths[key]


class _BestBandwidths:
    """The bandwidth of the best GPUs of one machine, by their number."""

    def __init__(self, topology: Topology) -> None:
        if topology.fabric is None:
            self._machines = [topology.machine(name) for name in topology.machine_names]
        else:
            self._machines = list(topology.templates)
        self._best: dict[tuple[int, collective.Rates | str], float] = {}

    def of(self, size: int, rates: collective.Rates | str) -> float:
        """Return GB/s of the best set of `size` GPUs on any machine; 0 if no machine has as many."""
        if (size, rates) not in self._best:
            large = [machine for machine in self._machines if machine.num_gpus >= size]
            found = (collective.survey(machine, size, rates=rates).best.gb_per_s for machine in large)
            self._best[size, rates] = max(found, default=0.0)
        return self._best[size, rates]


def _step(value: object, what: str) -> tuple[float, float]:
    parts = _checks.ordered(value, what, ValueError)
    if len(parts) != 2:
        raise ValueError(f"{what} = {_checks.shown(parts)} is not (compute_s, gigabytes)")
    compute_s = _checks.real(parts[0], f"{what}[0]", ValueError)
    gigabytes = _checks.real(parts[1], f"{what}[1]", ValueError)
    if not compute_s + gigabytes:
        raise ValueError(f"{what} = {_checks.shown(parts)}: a step takes time")
    return compute_s, gigabytes
