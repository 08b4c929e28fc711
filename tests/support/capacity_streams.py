"""Streams of small jobs, and planners that try what they can: for tests of online capacity planning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from topoplace_lab.capacity import CapacityJob, Catalogue, Node, VMType, plan_of

SMALL = Catalogue(
    [VMType("one", "slow", 1, 0.5), VMType("two", "slow", 2, 0.75), VMType("four", "fast", 4, 3.0)]
)
GPUS = [1, 2, 4]


@st.composite
def jobs_of(draw, most=6):
    """Jobs on SMALL; some cannot run everywhere, some arrive together, some are late from the beginning."""
    jobs = []
    for i in range(draw(st.integers(1, most))):
        hours = np.full((3, 4), np.inf)
        runs_on = draw(st.sets(st.integers(0, 2), min_size=1))
        base = draw(st.floats(1e-6, 20))
        for v in sorted(runs_on):
            hours[v, : GPUS[v]] = base / np.arange(1, GPUS[v] + 1) ** draw(st.floats(0.1, 1.0)) / (v + 1)
        submit = draw(st.sampled_from([0.0, 1.0, 2.5]) | st.floats(0, 10))
        due = submit + draw(st.floats(-3, 30))
        jobs.append(CapacityJob(f"job {i}", due, draw(st.floats(0, 2)), hours, submit))
    return jobs


@dataclass(frozen=True)
class AnyPlanner:
    """Some possible plan, another one at each decision: jobs are moved, resized and stopped without reason."""

    seed: int = 0
    name: str = "any"

    def plan(self, problem):
        random = np.random.default_rng([self.seed, problem.num_jobs, int(problem.due[0] * 1e6) & 0xFFFFFFFF])
        waiting = random.permutation(problem.num_jobs).tolist()
        nodes = []
        for _ in range(int(random.integers(1, problem.num_nodes + 1))):
            vm_type = int(random.integers(len(problem.catalogue)))
            free, jobs = problem.catalogue[vm_type].num_gpus, []
            for job in list(waiting):
                gpus = int(random.integers(1, free + 1)) if free else 0
                if gpus and np.isfinite(problem.hours[job, vm_type, gpus - 1]):
                    jobs.append((job, gpus))
                    waiting.remove(job)
                    free -= gpus
            if jobs:
                nodes.append(Node(vm_type, tuple(jobs)))
        if not nodes:
            _, vm_type, g = np.argwhere(np.isfinite(problem.hours))[0].tolist()
            nodes = [Node(vm_type, ((0, g + 1),))]
        return plan_of(problem, nodes)


@dataclass(frozen=True)
class Lazy:
    """Lets every job wait."""

    name: str = "lazy"

    def plan(self, problem):
        return plan_of(problem, [])
