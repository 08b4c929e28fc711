"""Every policy decides the same whether it looks at machines one by one or once at all that are in equal condition."""

from __future__ import annotations

import random

import pytest

import topoplace as tp
from thoroughness import thorough
from topoplace import HostResources, policies

STEPS = thorough(600, 15)
JOBS = [
    *(tp.JobGraph.ring(k) for k in range(1, 9)),
    tp.JobGraph.clique(3).with_(bandwidth_sensitive=True),
    tp.JobGraph.star(4).with_(single_machine=True),
    tp.JobGraph.chain(2).with_(cpus=10, memory_gb=20.5),
    tp.JobGraph.independent(3).with_(anti_affinity=True),
    tp.JobGraph.ring(2).with_(gpu_memory_gb=20),
]


def cluster(*, classes: bool) -> tp.Cluster:
    """Return five machines of three kinds."""
    machines = [
        tp.machines.get(name) for name in ("minsky", "dgx1-v100", "minsky", "dgx1-v100", "cubemesh-16")
    ]
    topology = tp.Topology.cluster(machines, network=12.5)
    return tp.Cluster(topology, HostResources(cpus=40, memory_gb=80), classes=classes)


def changed(state: tp.Cluster, rng: random.Random, step: int) -> None:
    """Release a job, or drain or undrain a GPU or a machine; the same for equal states of `rng`."""
    kind = rng.randrange(6)
    names = sorted(state.jobs)
    if kind < 3 and names:
        state.release(rng.choice(names))
    elif kind == 3:
        state.drain(rng.randrange(state.topology.num_gpus))
    elif kind == 4:
        state.undrain(rng.choice(state.topology.machine_names))
    elif step % 7 == 0:
        state.drain(rng.choice(state.topology.machine_names))


@pytest.mark.parametrize("name", policies.names())
def test_decisions_do_not_depend_on_classes(name: str) -> None:
    policy, rng = policies.get(name), random.Random(name)
    kept, single = cluster(classes=True), cluster(classes=False)
    placed = 0
    for step in range(STEPS):
        job, seed = rng.choice(JOBS), rng.random()
        fresh = tp.Cluster.restore(kept.snapshot())
        answers = [policy.place(job, state) for state in (kept, single, fresh)]
        assert answers[0] == answers[1] == answers[2]
        if step % 10 == 0:
            assert policy.explain(job, kept) == policy.explain(job, single)
        if answers[0] is not None:
            placed += 1
            for state in (kept, single):
                state.allocate(f"job{step:02}", answers[0], job)
        for state in (kept, single):
            changed(state, random.Random(seed), step)
        assert kept.snapshot() == single.snapshot()
    assert placed > STEPS // 4
