"""What a Kubernetes node gives away in place of whole GPUs: slices, shares, or only some of its GPUs."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

import topoplace as tp
from topoplace import TopologyError, discovery

GKE = "cloud.google.com/gke-"
A100 = "NVIDIA-A100-SXM4-80GB"


def node(labels: Mapping[str, str], gpus: int, allocatable: int | None = None) -> str:
    given = gpus if allocatable is None else allocatable
    status = {
        "capacity": {"nvidia.com/gpu": str(gpus)},
        "allocatable": {"nvidia.com/gpu": str(given)},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return json.dumps({"kind": "Node", "metadata": {"name": "n1", "labels": labels}, "status": status})


@pytest.mark.parametrize(
    ("labels", "gpus", "fraction"),
    [
        ({"nvidia.com/gpu.product": f"{A100}-MIG-1g.10gb"}, 56, 1 / 7),
        ({"nvidia.com/gpu.product": f"{A100}-MIG-3g.40gb", "nvidia.com/gpu.count": "16"}, 16, 3 / 7),
        (
            {
                f"{GKE}accelerator": "nvidia-tesla-a100",
                f"{GKE}accelerator-count": "2",
                f"{GKE}gpu-partition-size": "2g.10gb",
            },
            6,
            2 / 7,
        ),
    ],
)
def test_slices_are_read_as_slices(labels: Mapping[str, str], gpus: int, fraction: float) -> None:
    found = tp.read(node(labels, gpus))
    assert {(gpu.fraction, gpu.name[:3]) for gpu in found.gpus} == {(fraction, "MIG")}
    assert found.num_gpus == gpus
    placement = tp.policies.get("best-fit").place(tp.JobGraph.independent(1), tp.Cluster(found))
    assert placement is not None
    with pytest.raises(tp.AllocationError, match="the UUID of MIG0 is unknown; slices"):
        placement.env()


def test_gpus_that_gke_shares_are_counted_once() -> None:
    labels = {
        f"{GKE}accelerator": "nvidia-l4",
        f"{GKE}accelerator-count": "2",
        f"{GKE}gpu-sharing-strategy": "time-sharing",
        f"{GKE}max-shared-clients-per-gpu": "4",
    }
    found = tp.read(node(labels, 8))
    assert [gpu.model for gpu in found.gpus] == ["nvidia-l4"] * 2
    assert "GPUs that several pods share are counted once: those of n1." in found.notes
    assert not any("differs from the capacity" in note for note in found.notes)


def test_a_node_without_allocatable_gpus_is_closed() -> None:
    found = tp.read(node({"nvidia.com/gpu.count": "8"}, 8, 0))
    assert len(found.unhealthy_gpus) == 8
    assert "Nodes that can give no GPU to pods now, and are closed: n1 (0 of 8)." in found.notes


def test_the_gpus_of_such_a_node_are_not_free_on_another_topology() -> None:
    fresh = tp.Topology.from_links(4, [], machines=["n1"] * 4)
    with pytest.warns(UserWarning, match=r"GPU 0, 1, 2, 3: its node gets no pods \(allocatable: 0\)"):
        assert discovery.busy_gpus(DESCRIBED.format(ready=0, used=0), fresh) == (0, 1, 2, 3)


DESCRIBED = """\
Name:               n1
Labels:             nvidia.com/gpu.count=4
Capacity:
  nvidia.com/gpu:     4
Allocatable:
  nvidia.com/gpu:     {ready}
Allocated resources:
  Resource           Requests  Limits
  --------           --------  ------
  nvidia.com/gpu     {used}         {used}
"""


@pytest.mark.parametrize(
    ("ready", "used", "busy"), [(4, 0, ()), (4, 4, (0, 1, 2, 3)), (3, 0, None), (3, 1, None)]
)
def test_gpus_that_cannot_be_given_away_are_not_called_free(
    ready: int, used: int, busy: tuple[int, ...] | None
) -> None:
    text = DESCRIBED.format(ready=ready, used=used)
    if busy is not None:
        assert discovery.busy_gpus(text, tp.read(text)) == busy
    else:
        with pytest.raises(
            TopologyError, match="1 of 4 GPUs cannot be given to pods, but not which; use --busy"
        ):
            discovery.busy_gpus(text, tp.read(text))
