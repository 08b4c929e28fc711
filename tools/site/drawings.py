"""Draw the machines, clusters and placements of README and docs/pictures.md with `topoplace.drawing`.

python tools/site/drawings.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import topoplace as tp
from topoplace import drawing

IMAGES = Path(__file__).parents[2] / "docs/images/drawings"
MACHINES = (
    "dgx1-v100",
    "dgx2",
    "dgx-h100",
    "mi250x",
    "mi300x",
    "cubemesh-16",
    "torus2d-16",
    "gb200-nvl72",
    "tpu-v4-64",
)


def main() -> None:
    """Write every picture."""
    IMAGES.mkdir(exist_ok=True)
    for name, text in pictures():
        (IMAGES / f"{name}.svg").write_text(text, "utf-8")


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture."""
    yield "before-after", before_after()
    for name in MACHINES:
        yield name, drawing.svg(tp.machines.get(name))
    cluster, held = leaf_spine(64, {"leaf": 8, "spine": 64})
    yield "64-machines", drawing.svg(cluster, busy=held)
    cluster, held = leaf_spine(1500, {"leaf": 20, "spine": 300})
    yield "1500-machines", drawing.svg(cluster, busy=[gpu for gpus in held.values() for gpu in gpus])


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
    main()
