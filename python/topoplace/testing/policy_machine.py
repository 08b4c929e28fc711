"""A state machine of hypothesis that runs a cluster with a policy, and checks the contract at every step.

class MyMachine(PolicyMachine):
    def new_policy(self):
        return MyPolicy()

TestMyPolicy = MyMachine.TestCase
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from topoplace.cluster.cluster import Cluster
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.testing.answers import explained_text, placed_text, plan_text, queue_of
from topoplace.testing.decisions import DecisionCheck, check_plan, require

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
except ImportError as error:
    raise ImportError(
        "topoplace.testing.policy_machine needs hypothesis, which is not installed: pip install hypothesis"
    ) from error
from topoplace.testing import strategies

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph

_MOST_QUEUED = 4


class PolicyMachine(RuleBasedStateMachine):
    """A test in which jobs start and end, GPUs and machines are drained and return, and each decision is checked.

    Derive from it and write `new_policy`; the attribute `TestCase` of your class is a test for pytest and unittest.
    Each answer and plan is checked as `check_policy` does. The policy must also answer as a new policy does on a
    cluster restored from a snapshot, so that tables it keeps up to date are compared with new ones. Only `check_policy`
    tries another hash seed, looks for permanent refusals of jobs that once fitted, and requires that some job is
    placed.
    """

    def new_policy(self) -> Policy:
        """Return a new policy to test."""
        raise NotImplementedError("derive from PolicyMachine and write new_policy")

    def clusters(self) -> st.SearchStrategy[Cluster]:
        """Return the strategy for the first state of the cluster; by default small clusters of every kind."""
        kinds = (
            strategies.topologies(max_gpus=6),
            strategies.cluster_topologies(max_machines=3),
            strategies.partitioned_topologies(),
            strategies.sliced_topologies(max_gpus=2),
        )
        return strategies.clusters(st.one_of(kinds), know_hosts=True)

    def jobs(self) -> st.SearchStrategy[JobGraph]:
        """Return the strategy for new jobs; by default, jobs of 1 to 4 tasks with up to 3 requirements."""
        return strategies.job_graphs(max_tasks=4) | strategies.demanding_jobs()

    # ---- steps ---------------------------------------------------------------------------------------------

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Draw the cluster, and build the policy."""
        self.cluster = data.draw(self.clusters(), "cluster")
        self.policy = self.new_policy()
        self._count = 0

    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        """Have the policy place a job, check its answers, and allocate the placement."""
        job = data.draw(self.jobs(), "job")
        outcome = DecisionCheck(self.policy, self.new_policy, job, self.cluster).run()
        restored = self._restored()
        if not outcome.refused:
            texts = (
                placed_text(self.new_policy().place(job, restored)),
                explained_text(self.new_policy().explain(job, restored)),
            )
            require(texts == outcome.texts, f"{outcome.texts}, but on the restored cluster {texts}")
        if outcome.placement is not None:
            self.cluster.allocate(self._new_id(), outcome.placement, job)

    @rule(data=st.data())
    def plan(self, data: st.DataObject) -> None:
        """Have the policy plan a queue, check the plan, and start its jobs."""
        jobs = data.draw(st.lists(self.jobs(), min_size=1, max_size=_MOST_QUEUED), "queue")
        queue = queue_of(jobs)
        plan = check_plan(self.policy, self.new_policy, queue, self.cluster)
        texts = plan_text(plan), plan_text(self.new_policy().plan(queue, self._restored(), float(len(queue))))
        require(texts[0] == texts[1], f"plans {texts[0]}, but on the restored cluster {texts[1]}")
        for job_id, placement in plan.start:
            job = next(entry.job for entry in queue if entry.job_id == job_id)
            self.cluster.allocate(self._new_id(), placement, job)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """End a running job."""
        self.cluster.release(data.draw(st.sampled_from(self.running()), "job_id"))

    @rule(data=st.data())
    def drain(self, data: st.DataObject) -> None:
        """Drain a GPU or a machine."""
        self.cluster.drain(data.draw(self._targets(), "target"))

    @rule(data=st.data(), held=st.booleans())
    def hold(self, data: st.DataObject, held: bool) -> None:
        """Hold a GPU or a machine, or release it."""
        target = data.draw(self._targets(), "target")
        (self.cluster.hold if held else self.cluster.unhold)([target])

    @rule(data=st.data())
    def undrain(self, data: st.DataObject) -> None:
        """Undo the drain of a GPU or a machine."""
        self.cluster.undrain(data.draw(self._targets(), "target"))

    # ---- after every step ----------------------------------------------------------------------------------

    @invariant()
    def every_gpu_has_one_state(self) -> None:
        """Check that jobs hold no more than all of a GPU, and that it is free if it is in service and not held."""
        cluster = self.cluster
        held: Counter[int] = Counter()
        for job_id, gpus in cluster.allocations.items():
            job = cluster.jobs.get(job_id)
            held.update(dict.fromkeys(gpus, job.gpu_thousandths if job else WHOLE_GPU))
        require(max(held.values(), default=0) <= WHOLE_GPU, f"held more than once: {held.most_common(1)}")
        rest = set(range(cluster.topology.num_gpus)) - held.keys() - set(cluster.out_of_service())
        require(tuple(sorted(rest)) == cluster.free_gpus(), f"free {cluster.free_gpus()}, expected {rest}")

    @invariant()
    def hosts_add_up(self) -> None:
        """Check that the host resources of jobs and the free ones add up to those of the machines."""
        hosts = self.cluster.hosts
        if not hosts.resources:
            return
        used = np.zeros_like(hosts.capacity)
        for held in hosts.held.values():
            for _, machine, column, amount in held.needs():
                used[machine, column] += amount
        require(
            (used + hosts.free == hosts.capacity).all(), f"held {used.tolist()}, free {hosts.free.tolist()}"
        )

    @invariant()
    def snapshot_restores(self) -> None:
        """Check that the snapshot restores to an equal state."""
        require(self._restored().snapshot() == self.cluster.snapshot(), "the restored cluster differs")

    # ---- helpers -------------------------------------------------------------------------------------------

    def running(self) -> list[str]:
        """Return the ids of the jobs that hold GPUs or host resources."""
        return sorted({*self.cluster.allocations, *self.cluster.hosts.held})

    def _restored(self) -> Cluster:
        return Cluster.restore(self.cluster.snapshot())

    def _targets(self) -> st.SearchStrategy[int | str]:
        topology = self.cluster.topology
        return st.sampled_from([*range(topology.num_gpus), *topology.machine_names])

    def _new_id(self) -> str:
        self._count += 1
        return f"started-{self._count}"
