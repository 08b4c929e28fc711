"""Threads with clusters and policies of their own share topologies, and what is derived from these."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pytest

import topoplace as tp
from topoplace.engine.memo import Memo

NUM_THREADS = 4


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that have a lock in common take turns after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def decisions(topology: tp.Topology, name: str) -> list[object]:
    """Fill its own cluster, and return what the policy decided."""
    cluster, policy = tp.Cluster(topology), tp.policies.get(name)
    decided: list[object] = []
    for number, size in enumerate((2, 3, 1, 4, 2, 3, 5, 1)):
        placement = policy.place(tp.JobGraph.ring(size).with_(bandwidth_sensitive=size > 2), cluster)
        decided.append(None if placement is None else placement.gpus)
        if placement is not None:
            cluster.allocate(f"job-{number}", placement)
    return decided


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("name", ["baseline", "mapa-greedy", "mapa-preserve", "topo-aware"])
def test_threads_with_clusters_of_their_own_decide_as_one_alone(name: str) -> None:
    machine = tp.machines.get("cubemesh-16")
    alone = decisions(tp.Topology.from_json(machine.to_json()), name)
    for _ in range(3):
        fresh = tp.Topology.from_json(machine.to_json())
        start = Barrier(NUM_THREADS)

        def decide(_: int, fresh: tp.Topology = fresh, start: Barrier = start) -> list[object]:
            start.wait()
            return decisions(fresh, name)

        with ThreadPoolExecutor(NUM_THREADS) as pool:
            assert list(pool.map(decide, range(NUM_THREADS))) == [alone] * NUM_THREADS


def test_what_a_quicker_thread_derived_is_kept() -> None:
    topology = tp.machines.get("dgx1-v100")
    built: list[object] = []

    def build(of: tp.Topology) -> object:
        own = object()
        if not built:
            built.append(own)
            quicker = Thread(target=of.derived, args=(build,))
            quicker.start()
            quicker.join()
        else:
            built.append(own)
        return own

    assert topology.derived(build) is built[1]
    assert topology.derived(build) is built[1]


@pytest.mark.usefixtures("quick_switches")
def test_threads_share_a_memo_that_is_always_full() -> None:
    memo: Memo[int, int] = Memo(2)

    def ask(_: int) -> bool:
        return all(memo.get_or_build(key % 7, lambda key=key: key % 7) == key % 7 for key in range(20_000))

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        assert all(pool.map(ask, range(NUM_THREADS)))
