"""Views of a cluster that raise an exception when it changes: the change is made, and the others hear of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pytest

import topoplace as tp
from topoplace.engine.machine_state import ClusterView

TOPOLOGY = tp.Topology.cluster(tp.machines.get("minsky"), count=2)


class Fragile:
    """A view that raises."""

    def __init__(self, cluster: tp.Cluster) -> None:
        self.cluster = cluster

    def changed(self, gpus: Sequence[int]) -> None:
        raise LookupError("no idea")


def running() -> tp.Cluster:
    """Return a cluster with a job, of which a policy has derived tables."""
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("first", (0, 1))
    tp.policies.get("topo-aware").place(tp.JobGraph.ring(2), cluster)
    return cluster


@pytest.mark.parametrize("change", ["allocate", "release", "drain", "undrain", "slice_gpu"])
def test_a_view_that_raises_is_dropped_after_the_change_and_the_caller_is_warned(change: str) -> None:
    cluster = tp.Cluster(tp.machines.get("dgx-a100"))
    cluster.allocate("first", [0])
    fragile, sound = cluster.view(Fragile), cluster.view(ClusterView)
    arguments = {"allocate": ("new", [4, 5]), "release": ("first",), "slice_gpu": (3, ("1g.10gb",))}
    with pytest.warns(
        RuntimeWarning, match=r"Fragile\.changed\(\) raised LookupError\('no idea'\)"
    ) as caught:
        getattr(cluster, change)(*arguments.get(change, (3,)))
    assert len(caught) == 1
    assert cluster.view(ClusterView) is sound
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster.allocate("last", [7])
    assert cluster.gpus_of("last") == (7,)
    assert cluster.view(Fragile) is not fragile


def test_the_warning_names_the_line_of_the_change() -> None:
    cluster = running()
    cluster.view(Fragile)
    with pytest.warns(RuntimeWarning, match="the view is dropped") as caught:
        cluster.release("first")
    assert caught[0].filename == __file__


def test_a_refused_change_keeps_the_views() -> None:
    cluster = running()
    fragile, sound = cluster.view(Fragile), cluster.view(ClusterView)
    for refused in (
        lambda: cluster.allocate("first", [2]),
        lambda: cluster.release("nobody"),
        lambda: cluster.slice_gpu(0, ()),
        lambda: cluster.drain("no machine"),
    ):
        with pytest.raises(tp.AllocationError):
            refused()
        assert cluster.view(Fragile) is fragile
        assert cluster.view(ClusterView) is sound


def _what_if_watched(cluster: tp.Cluster) -> None:
    with cluster.what_if():
        cluster.release("first")
        cluster.view(Fragile)


def test_a_view_that_raises_does_not_stop_a_rollback() -> None:
    cluster = running()
    before = cluster.snapshot()
    with pytest.warns(RuntimeWarning, match="Fragile"):
        _what_if_watched(cluster)
    assert cluster.snapshot() == before
    policy, ring = tp.policies.get("topo-aware"), tp.JobGraph.ring(2)
    assert policy.place(ring, cluster) == policy.place(ring, cluster.copy())
