"""How a job goes on after a failure: from its last checkpoint, on which GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from topoplace import _checks
from topoplace.engine.confined import confined
from topoplace.errors import SearchTimeoutError
from topoplace.moving import MoveCosts, repair
from topoplace.moving.leaving import naming
from topoplace.placement import Placement
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.elastic_jobs import resized, scored
from topoplace_lab.simulate.interruptions import changes

if TYPE_CHECKING:
    from collections.abc import Collection

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.moving import Reassignment
    from topoplace_lab.simulate.metrics import JobRecord

Way = Literal["repair", "place-again", "queue"]
WAYS: Final[tuple[str, ...]] = get_args(Way)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How jobs go on after a failure. Software that fails restarts on the same GPUs, whatever the way.

    The times are assumptions: hardly anybody publishes theirs.

    Args:
        way: "repair": by `topoplace.repair`, which moves few tasks. "place-again": all tasks where the policy places
            the job now. "queue": from its place in the queue. Jobs that find no GPUs in the first two ways, or have a
            requirement that repairs do not honour, wait in the queue, too. An elastic job goes on with fewer tasks if
            it finds no GPUs for all, in any way.
        checkpoint_every: Seconds of work between checkpoints: a job loses what it did since the last one. 0 for none.
        restart_s: Seconds for which a job holds its GPUs before it goes on; also if an elastic job gets another number
            of tasks, before which it writes a checkpoint.
        costs: Seconds more for a job of which tasks move: `move`, and `move_per_gpu` for each of these tasks, whose
            checkpoint is on another machine. None for none.
        step_s: Seconds of a training step. With it, a repair has the least cost of moves and of communication in the
            steps that are left; without, the fewest moves.
        spares: The number of machines held as spares in each domain of a level, such as {"rack": 1}, if as many are
            idle (`Cluster.hold_spares`): at the start, and again whenever a part fails or is repaired. Only repairs use
            them.
        lent: Pre-emptible jobs, whose `JobGraph.priority` is below 0, may run on the spares, and are pre-empted when a
            repair needs them; they lose their work since the last checkpoint.

    Raises:
        ValueError: Names a wrong value.
    """

    way: Way = "repair"
    checkpoint_every: float = 3600.0
    restart_s: float = 300.0
    costs: MoveCosts | None = None
    step_s: float | None = None
    spares: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    lent: bool = False

    def __post_init__(self) -> None:
        _checks.one_of(self.way, "way", WAYS, ValueError)
        for name in ("checkpoint_every", "restart_s"):
            _checks.real(getattr(self, name), name, ValueError, high=MAX_NUMBER)
        if self.costs is not None:
            _checks.instance(self.costs, MoveCosts, "costs", ValueError)
        if self.step_s is not None:
            _checks.positive(self.step_s, "step_s", ValueError, high=MAX_NUMBER)
        if self.step_s is not None and self.way != "repair":
            raise ValueError(f"step_s: chooses among repairs, not with way = {self.way!r}")
        _checks.instance(self.spares, Mapping, "spares", ValueError)
        for level, machines in self.spares.items():
            _checks.text(level, "a level in spares", ValueError)
            _checks.integer(machines, f"spares[{level!r}]", ValueError, low=1, high=1 << 30)
        object.__setattr__(self, "spares", dict(self.spares))
        if _checks.flag(self.lent, "lent", ValueError) and not self.spares:
            raise ValueError("lent: there are no spares")

    def hold_spares(self, cluster: Cluster) -> None:
        """Give each domain its number of spares, if it can have as many; ValueError for a level that is not there."""
        with naming("spares"):
            for level, machines in self.spares.items():
                found = cluster.hold_spares(level=level, machines=machines, lent=self.lent)
                cluster.unhold(found.surplus)

    def pause(self, job_id: str, before: Placement, after: Placement) -> float:
        """Return the seconds for which a job holds its new GPUs before it goes on."""
        moved = len(changes(before, after))
        return self.restart_s + (self.costs.of(job_id, moved)[0] if self.costs and moved else 0.0)

    def replaced(
        self, record: JobRecord, lost: Collection[int], policy: Policy, cluster: Cluster
    ) -> tuple[Placement | None, Collection[str]]:
        """Give a stopped job, which still holds its GPUs, others for those in `lost`; return None if it got none.

        It holds no GPU then. Also return the jobs that had to leave spares, which hold none, either.
        """
        job_id, placement = record.job_id, None
        if self.way == "repair" and (
            plan := scored(self._repair(record, lost, cluster), record) or self._smaller(record, cluster)
        ):
            plan.carry_out(cluster)
            return plan.placement, plan.others.keys()
        cluster.release(job_id)
        confined_policy = confined(policy, record.submitted.excluded)
        for size in record.job.sizes if self.way == "place-again" else ():
            job = record.submitted.with_tasks(size).job
            if (placement := confined_policy.place(job, cluster)) is not None:
                cluster.allocate(job_id, placement, job)
                break
        return placement, ()

    @staticmethod
    def _smaller(record: JobRecord, cluster: Cluster) -> Reassignment | None:
        """Return the plan that leaves an elastic job as many tasks as possible; None if there is none."""
        held = len(cluster.gpus_of(record.job_id))
        plans = (resized(record, size, cluster) for size in record.job.sizes if size < held)
        return next(filter(None, plans), None)

    def _repair(self, record: JobRecord, lost: Collection[int], cluster: Cluster) -> Reassignment | None:
        """Return a plan that gives all tasks GPUs, on machines that the job may use; None if there is none."""
        try:
            with cluster.what_if():
                for machine in record.submitted.excluded:
                    cluster.drain(machine)
                front = repair(record.job_id, cluster, lost=lost, further=self.step_s is not None)
        except (ValueError, SearchTimeoutError):  # a requirement that repairs do not honour, or no time left
            return None
        if front.unrepaired or not front.plans:
            return None
        if self.step_s is None:
            return front.plans[0]
        history = record.history
        assert history is not None
        steps = history.left * history.run_time / self.step_s
        return front.best(steps_left=steps, costs=self.costs)
