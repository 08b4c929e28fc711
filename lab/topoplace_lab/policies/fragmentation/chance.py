"""Rules that draw machines at random: one, or the emptier of two."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.engine.machines.machine_class import members
from topoplace_lab.sharing.sharing_policy import Room, SharingPolicy

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_options import Choice
    from topoplace.engine.request import JobRequest
    from topoplace_lab.sharing.ranked_machines import Machines, RankedForJob


class RandomFit(SharingPolicy):
    """Takes a random machine among those with room, and a random GPU there for a job that shares one.

    Args:
        seed: The seed of the draws. A draw depends only on the seed, the number of running jobs, and what is free. It
            therefore repeats if a cluster returns to the same state, as when jobs run one by one.
    """

    name = "random-fit"
    sees_cpus = False
    num_draws = 1

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = _checks.integer(seed, "seed", ValueError, low=0, high=2**63 - 1)

    def score(self, request: JobRequest, machines: Machines, view: ClusterView) -> NDArray[np.float64]:
        """Return the thousandths of GPUs left on each machine; the draw ignores them."""
        left: NDArray[np.float64] = machines.left.sum(axis=1).astype(float)
        return left

    def pick(self, request: JobRequest, room: Room, view: ClusterView) -> tuple[int, ...]:
        """Return random GPUs with enough left for a job that shares GPUs, else the lowest whole GPUs; ascending."""
        if not self.draws_gpus(request):
            return super().pick(request, room, view)
        return tuple(sorted(_draws(self.seed, view, "GPUs").sample(list(members(room.able)), request.size)))

    def draws_gpus(self, request: JobRequest) -> bool:
        """Return True if the GPUs of a job are drawn at random, as those of jobs that share GPUs."""
        return request.job.gpu_fraction < 1

    def _new_options(self, request: JobRequest, view: ClusterView) -> Any:
        return _Drawn(super()._new_options(request, view), view, self.seed, self.num_draws)


class TwoChoices(RandomFit):
    """Takes the emptier of two drawn machines with room (power of two choices); ties go to the first draw."""

    name = "two-choices"
    num_draws = 2


class _Drawn:
    """The machines with room, in the order of the draw."""

    def __init__(self, ranked: RankedForJob, view: ClusterView, seed: int, num_draws: int) -> None:
        self._ranked, self._view, self._seed, self._num_draws = ranked, view, seed, num_draws

    def best(self, least_utility: float = -math.inf) -> tuple[int, Choice] | None:
        """Return (machine, choice) of the machine that is drawn; None if none has room."""
        able = self._ranked.able()
        if least_utility > 0 or not len(able):
            return None
        draws = _draws(self._seed, self._view, "machines").sample(
            range(len(able)), min(self._num_draws, len(able))
        )
        drawn = [int(able[place]) for place in draws]
        choices = [(machine, self._ranked.choice_on(machine)) for machine in drawn]
        return min(choices, key=lambda one: one[1].option.order)

    def ranked(self) -> Iterator[tuple[int, Choice]]:
        """Yield (machine, choice) of the machine that is drawn, then of all others."""
        first = self.best()
        if first is not None:
            yield first
            yield from self._ranked.ranked()

    def ranked_machines(self, least_utility: float) -> Iterator[list[int]]:
        """Yield the machine that is drawn, then the others that are equally good together, the best first."""
        first = self.best(least_utility)
        if first is None:
            return
        yield [first[0]]
        for machines in self._ranked.ranked_machines(least_utility):
            if others := [machine for machine in machines if machine != first[0]]:
                yield others


def _draws(seed: int, view: ClusterView, of: str) -> random.Random:
    """Return random numbers that are the same for equal clusters."""
    cluster = view.cluster
    left = int(cluster.hosts.free.sum()) if cluster.hosts.resources else 0
    return random.Random(f"{seed} {of} {cluster.native.num_jobs} {cluster.num_free} {left}")
