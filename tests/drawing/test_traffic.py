"""What carries the data of a job in a picture: rings as they are planned, their direction, and their slowest link."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import topoplace as tp
from topoplace import collective, drawing
from topoplace.drawing.traffic import in_words, traffic_of

DGX = tp.machines.get("dgx1-v100")


@pytest.mark.parametrize("name", ["dgx1-v100", "mi250x", "l40s-8", "dgx-h100", "cubemesh-16", "summit"])
def test_the_pairs_are_those_of_the_planned_rings(name: str) -> None:
    topology = tp.machines.get(name)
    gpus = [0, 2, 3, 1]
    ways = {
        pair
        for ring in collective.rings(topology, gpus).rings
        for pair in pairwise((*ring.gpus, ring.gpus[0]))
    }
    found = traffic_of(topology, tp.JobGraph.ring(4), gpus)
    assert found.pairs == {(min(pair), max(pair)) for pair in ways}
    assert found.backward == {(u, v) for u, v in found.pairs if (u, v) not in ways}


def test_the_slowest_link_of_rings_is_marked_and_named() -> None:
    """Between 1 and 7 and between 2 and 4 of a DGX-1 is no NVLink."""
    gpus = [1, 4, 2, 7]
    found = traffic_of(DGX, tp.JobGraph.ring(4), gpus)
    assert found.slowest == {(1, 7), (2, 4)}
    said = in_words(DGX, found)
    assert said.startswith(
        "NCCL plans 2 rings of 3 GB/s. Their slowest links are 1-7, 2-4: PCIe, between sockets"
    )
    text = drawing.svg(DGX, chosen=gpus, job=tp.JobGraph.ring(4))
    marked = re.findall(
        r'<g class="link[^"]*" data-link="([\d-]+)"[^>]*>(?:(?!</g>).)*class="used[^"]*slowest"', text
    )
    assert sorted(marked) == ["1-7", "2-4"]
    assert ">slowest of its rings<" in text


def test_a_link_is_named_as_the_caller_numbers_gpus() -> None:
    found = traffic_of(DGX, tp.JobGraph.ring(2), [1, 4])
    assert "link is 11-14:" in in_words(DGX, found, range(10, 18))


def test_rings_over_links_of_other_gpus_pass_these_gpus() -> None:
    """In a torus, NCCL's rings go over a chosen GPU in between; the picture shows both of its links."""
    torus = tp.machines.get("torus2d-16")
    assert collective.rings(torus, range(4)).path_type == "NVB"
    found = traffic_of(torus, tp.JobGraph.ring(4), range(4))
    direct = {(u, v) for u, v, link in torus.links if link.kind.value.startswith("nvlink")}
    assert found.pairs
    assert found.pairs <= direct


def test_a_job_without_rings_is_its_pairs_and_says_nothing() -> None:
    found = traffic_of(DGX, tp.JobGraph.chain(3), [0, 3, 2])
    assert (found.pairs, found.slowest, found.plans) == ({(0, 3), (2, 3)}, frozenset(), [])
    assert in_words(DGX, found) == ""
    alone = traffic_of(DGX, tp.JobGraph.ring(1), [0])
    assert (alone.pairs, in_words(DGX, alone)) == (frozenset(), "")


def test_pairs_of_a_gang_are_those_of_its_job() -> None:
    """Rings over several machines are not drawn as such."""
    cluster = tp.Topology.cluster(DGX, 2)
    found = traffic_of(cluster, tp.JobGraph.ring(3), [0, 1, 8])
    assert (found.pairs, found.plans) == ({(0, 1), (1, 8), (0, 8)}, [])
