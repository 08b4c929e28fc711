"""The gallery of the site: machines, clusters and answers of the library, drawn anew by each build.

`python tools/site/drawings.py` draws the picture of README.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pictures

import topoplace as tp
from topoplace import drawing

SHOWN = Path(__file__).parents[2] / "docs/images/before-after.svg"
"""README's picture, the only one that the repository contains."""


def machine(name: str) -> str:
    """Return the picture of a built-in machine."""
    return drawing.svg(tp.machines.get(name))


def cluster(count: int, levels: dict[str, int], *, by_job: bool) -> str:
    """Return the picture of a cluster in use; by_job: each job has a colour."""
    topology, held = leaf_spine(count, levels)
    every = [gpu for gpus in held.values() for gpu in gpus]
    return drawing.svg(topology, busy=held if by_job else every)


Drawn = dict[str, tuple[str, Callable[[], str]]]
"""What a picture shows, and the function that draws it, by the picture's name."""

GALLERY: dict[str, tuple[str, Drawn]] = {
    "Machines": (
        "A line is a link between two GPUs, or from a GPU to its switches or its CPU. Colour and width show the class "
        "of its speed: each class is about twice as fast as the one before. Paths over PCIe are dashed. Tori are drawn "
        "as planes, and an NVLink domain of several machines as a bar between them.",
        {
            name: (shows, partial(machine, name))
            for name, shows in (
                ("dgx1-v100", "A DGX-1: eight GPUs in two sockets, with NVLinks of 50 and 25 GB/s"),
                (
                    "dgx-h100",
                    "A DGX H100: an adapter and a PCIe path for each GPU, and four NVSwitches as a bar",
                ),
                ("dgx2", "A DGX-2: two rows of eight GPUs, each with six NVSwitches, which are joined"),
                ("mi250x", "An MI250X machine: eight GPUs joined by links of 200, 100 and 50 GB/s"),
                ("mi300x", "An MI300X machine: each pair of eight GPUs has a link of 64 GB/s"),
                ("cubemesh-16", "A cube mesh of sixteen GPUs in four sockets"),
                ("torus2d-16", "A torus of 4 x 4 GPUs"),
                ("tpu-v4-64", "A TPU v4 slice of 4 x 4 x 4 chips as four planes"),
                (
                    "gb200-nvl72",
                    "A GB200 NVL72: eighteen trays of four GPUs, and the bar of their NVSwitches",
                ),
            )
        },
    ),
    "Clusters": (
        "Machines are inside the domains of their network, with a colour for each job that holds many GPUs. Of more "
        "than 1,024 GPUs, each machine is a tile, shaded by the share of its GPUs in use. A domain is hatched if "
        "its free GPUs would fill a machine but none of its machines is idle. 12,500 machines take half "
        "a second and 1.8 MB.",
        {
            "64-machines": (
                "64 machines of eight GPUs in eight leaves, with jobs in colours",
                partial(cluster, 64, {"leaf": 8, "spine": 64}, by_job=True),
            ),
            "1500-machines": (
                "1,500 machines as tiles in the leaves of their network, two of them hatched",
                partial(cluster, 1500, {"leaf": 20, "spine": 300}, by_job=False),
            ),
        },
    ),
    "Answers": (
        "What [kernels](kernels.md), [bounds of collectives](collectives.md) and the [planner](capacity.md) answer.",
        {
            "partition": (
                "A grid of three rows and four columns, halved between the second and the third column",
                pictures.partition,
            ),
            "mapping": (
                "A chain whose heavy edge lies between two machines, and the mapping that puts it inside one",
                pictures.mapping,
            ),
            "flow": (
                "A network of two tasks and two machines, with its cheapest flow in blue",
                pictures.flow,
            ),
            "collective-cut": (
                "The cut around GPU 7 of GPUs 0, 3, 4 and 7: NVLinks of 40 and 20 GB/s and PCIe of 12 cross it",
                pictures.collective,
            ),
            "capacity": (
                "A plan: jobs on the GPUs of three rented nodes over time, and when each is due",
                pictures.capacity,
            ),
        },
    ),
}


def gallery() -> dict[str, str]:
    """Return the page and its pictures, by their paths in the site."""
    parts, files = ["# Gallery"], dict[str, str]()
    for title, (text, drawn) in GALLERY.items():
        parts += [f"## {title}", text]
        for name, (shows, draw) in drawn.items():
            files[f"images/{name}.svg"] = draw()
            parts.append(f"![{shows}](images/{name}.svg)")
    return {"gallery.md": "\n\n".join(parts), **files}


def before_after() -> str:
    """Return README's ring of four on a DGX-1: on the lowest free GPUs, and where a policy places it."""
    topology = tp.machines.get("dgx1-v100")
    cluster = tp.Cluster(topology)
    cluster.allocate("running", [0, 5])
    job = tp.JobGraph.ring(4).with_(bandwidth_sensitive=True)
    placed = tp.policies.get("mapa-greedy").place(job, cluster)
    assert isinstance(placed, tp.Placement)
    return drawing.before_after(topology, cluster.free_gpus()[:4], placed.gpus, job=job, busy=[0, 5])


def leaf_spine(count: int, levels: dict[str, int]) -> tuple[tp.Topology, dict[str, list[int]]]:
    """Return a cluster of machines with 8 GPUs, and the GPUs of its jobs, which came and went."""
    fabric = tp.Fabric.regular(count, levels).with_level("leaf", gb_per_s=50.0, rail=True)
    fabric = fabric.with_level("spine", gb_per_s=50.0, oversubscription=2.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric, count=count)
    chance = random.Random(7)
    held: dict[str, list[int]] = {}
    gpu = 0
    while gpu < topology.num_gpus:
        size = chance.choice((1, 2, 4, 8, 16, 48))
        if chance.random() < 0.6:
            held[f"job{len(held)}"] = list(range(gpu, min(gpu + size, topology.num_gpus)))
        gpu += size
    return topology, held


if __name__ == "__main__":
    SHOWN.write_text(before_after(), "utf-8")
