"""A cluster keeps nothing of jobs that are gone, whichever way they went."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress

import pytest

import topoplace as tp


@pytest.mark.parametrize("way", ["plain", "transaction", "rolled back", "what_if", "nested"])
def test_the_graph_of_a_job_that_is_gone_is_freed(way: str) -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    job = tp.JobGraph.from_edges(2, [(0, 1)])
    seen = weakref.ref(job)

    if way == "plain":
        come_and_go(cluster, job)
    elif way == "what_if":
        with cluster.what_if():
            cluster.allocate("job", [0, 1], job)
    elif way == "nested":
        with cluster.transaction(), cluster.transaction():
            come_and_go(cluster, job)
    else:
        with suppress(KeyError), cluster.transaction():
            come_and_go(cluster, job)
            if way == "rolled back":
                raise KeyError
    del job
    gc.collect()
    assert seen() is None


def come_and_go(cluster: tp.Cluster, job: tp.JobGraph) -> None:
    cluster.allocate("job", [0, 1], job)
    cluster.release("job")


def test_an_outer_transaction_undoes_what_an_inner_one_kept() -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    job = tp.JobGraph.ring(2)
    cluster.allocate("before", [0, 1], job)
    with suppress(KeyError), cluster.transaction():
        with cluster.transaction():
            cluster.release("before")
        with cluster.what_if():
            cluster.allocate("other", [2])
        raise KeyError
    assert cluster.jobs == {"before": job}
    assert cluster.allocations == {"before": (0, 1)}
