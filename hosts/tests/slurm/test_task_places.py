"""Where the tasks of a job are, as the AdminComment notes it, and the placement of a running job from that."""

from __future__ import annotations

import random

import pytest

from placed_ranks import cluster
from topoplace.errors import SlurmError, TopologyError
from topoplace_hosts.slurm import task_places

TOPOLOGY = cluster(("n0", "n1", "n2", "login", "a-10"))


@pytest.mark.parametrize(
    ("gpus", "text"),
    [
        ((1, 3, 5, 7), "n[0-1]:1.3"),
        ((8, 4, 1), "n2:0+n[1]:0+n0:1"),
        ((15, 0, 1, 14), "login:3+n0:0.1+login:2"),
    ],
)
def test_texts(gpus: tuple[int, ...], text: str) -> None:
    places = tuple((TOPOLOGY.machine_names[gpu // 4], gpu % 4) for gpu in gpus)
    assert task_places.read(text) == places
    assert task_places.read(task_places.written(TOPOLOGY, gpus)) == places


@pytest.mark.parametrize("seed", range(50))
def test_what_is_written_is_read_in_the_order_of_tasks(seed: int) -> None:
    generator = random.Random(seed)
    gpus = generator.sample(range(TOPOLOGY.num_gpus), generator.randint(1, TOPOLOGY.num_gpus))
    text = task_places.written(TOPOLOGY, gpus)
    assert task_places.read(text) == tuple((TOPOLOGY.machine_names[gpu // 4], gpu % 4) for gpu in gpus)
    assert task_places.split(task_places.joined("topoplace1;gpus=2", text)) == ("topoplace1;gpus=2", text)
    assert not set(text) & set(" '\"\n=")  # of which scontrol's lines and words are made


@pytest.mark.parametrize(
    "text",
    ["", "n0", "n0:", ":1", "n0:x", "n0:1+", "n0:1+n0:1", "n[0:1", "n[1-0]:2", "n[0-99999]:1", "n0:1 n1:2"],
)
def test_strange_texts_are_refused(text: str) -> None:
    with pytest.raises((SlurmError, TopologyError)):
        task_places.read(text)


def test_an_order_that_is_too_long_is_not_noted() -> None:
    many = cluster([f"node{i}" for i in range(1000)])
    order = list(range(0, many.num_gpus, 4))
    assert task_places.written(many, order) == "node[0-999]:0"
    random.Random(0).shuffle(order)
    assert task_places.written(many, order) == ""
    assert task_places.joined("topoplace1;gpus=1", "") == "topoplace1;gpus=1"
