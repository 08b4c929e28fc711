"""Two placements in one picture: their own bandwidths, the factor, each GPU twice, and no text outside."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

import topoplace as tp
from topoplace import drawing

DGX = tp.machines.get("dgx1-v100")
SVG = "{http://www.w3.org/2000/svg}"


def texts(text: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(text).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["dgx1-v100", "torus2d-16", "l40s-8", "gb200-nvl72"])
def test_the_sentence_has_the_factor_of_what_rings_carry(name: str) -> None:
    topology = tp.machines.get(name)
    before, after = (1, 2, 4, 5), (0, 1, 2, 3)
    job = tp.JobGraph.from_collectives(4, [tp.Collective("all_reduce", (0, 1, 2, 3), 4.0)])
    text = drawing.before_after(topology, before, after, job=job, busy=[6])
    then, now = (tp.collective.ring_bandwidth(topology, gpus) for gpus in (before, after))
    head, about, *_ = texts(text)
    if then == now:
        assert head == f"NCCL's rings carry {now:.3g} GB/s on either set of GPUs"
    else:
        assert head == (
            f"{now / then:.3g} × the bandwidth: NCCL's rings carry {now:.3g} in place of {then:.3g} GB/s"
        )
    times = [tp.communication_time(job, gpus, topology).seconds for gpus in (before, after)]
    assert about.endswith(f"a step communicates {times[0] / times[1]:.3g} × as fast")
    sides = [one for one in texts(text) if one.startswith(("before: ", "after: "))]
    assert sides == [
        f"{word}: GPUs {', '.join(map(str, gpus))} – {rate:.3g} GB/s – {1e3 * seconds:.3g} ms a step"
        for word, gpus, rate, seconds in zip(
            ("before", "after"), (before, after), (then, now), times, strict=True
        )
    ]
    drawn = Counter(re.findall(r'data-gpu="(\d+)"', text))
    assert drawn == dict.fromkeys(map(str, range(topology.num_gpus)), 2)
    chosen = re.findall(r'class="gpu chosen[^"]*" data-gpu="(\d+)"', text)
    assert list(map(int, chosen)) == sorted(before) + sorted(after)


def test_an_all_reduce_in_nvswitches_is_named() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), 2)
    before, after = (0, 1, 2, 3, 8, 9, 10, 11), range(8)
    head, *others = texts(drawing.before_after(topology, before, after, job=tp.JobGraph.allreduce(8)))
    assert head == "2.38 × the bandwidth: an all-reduce carries 476 in place of 200 GB/s"
    assert others[0].endswith("a step communicates 2.38 × as fast")
    assert any(one.startswith("after: GPUs 0, 1, 2, 3, 4, 5, 6, 7 – 476 GB/s by NV") for one in others)
    assert texts(drawing.before_after(topology, before, after))[0].endswith(
        "rings carry 360 in place of 200 GB/s"
    )


def test_a_worse_choice_is_called_worse() -> None:
    text = drawing.before_after(DGX, (0, 1, 2, 3), (1, 2, 4, 5))
    then, now = (tp.collective.ring_bandwidth(DGX, gpus) for gpus in ((0, 1, 2, 3), (1, 2, 4, 5)))
    assert now < then
    assert texts(text)[0].startswith(f"1/{then / now:.3g} of the bandwidth: ")
    assert "a step" not in text


def test_what_carries_nothing_has_no_factor() -> None:
    apart = tp.Topology.from_links(4, [(0, 1, 50.0)], 0.0)
    for before, after in (((0, 1), (2, 3)), ((0,), (1,))):
        assert texts(drawing.before_after(apart, before, after))[0] == "Before and after"


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(tp.TopologyError, match=r"chosen\[0\] = 8"):
        drawing.before_after(DGX, (8,), (0,))
    with pytest.raises(tp.TopologyError, match="theme = 'x'"):
        drawing.before_after(DGX, (1,), (0,), theme="x")
    with pytest.raises(tp.TopologyError, match="before has 2 GPUs for 3 tasks of the job"):
        drawing.before_after(DGX, (1, 2), (0, 1), job=tp.JobGraph.ring(3))
    with pytest.raises(tp.TopologyError, match=r"after = .* has 3 GPUs, before has 2"):
        drawing.before_after(DGX, (1, 2), (0, 1, 2))
    with pytest.raises(tp.TopologyError, match="job = 'ring'"):
        drawing.svg(DGX, chosen=(1, 2), job="ring")  # type: ignore[arg-type]
