"""Graphs to split, in the form of each library: clusters of machines, grids, random graphs of four kinds, files."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from topoplace import kernels

IMBALANCE = 0.03


class Instance:
    """A graph as edges, and as the rows that other libraries read."""

    def __init__(
        self, name: str, vertices: int, edges: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        self.name, self.vertices, self.edges, self.weights = name, vertices, edges, weights

    @cached_property
    def graph(self) -> kernels.Graph:
        rows = self.edges if self.weights is None else np.column_stack([self.edges, self.weights])
        return kernels.Graph.from_edges(self.vertices, rows.astype(float))

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the start of each vertex's arcs, their heads and their weights, in 32 bits each."""
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        first = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=self.vertices))])
        weights = None if self.weights is None else np.tile(self.weights, 2)[order].astype(np.int32)
        return first.astype(np.int32), ends[order, 1].astype(np.int32), weights

    def cut(self, side: np.ndarray) -> float:
        """Return the cut of `side`; infinite if a side is too heavy."""
        if np.bincount(side, minlength=2).max() > (1 + IMBALANCE) * math.ceil(self.vertices / 2):
            return math.inf
        crossing = side[self.edges[:, 0]] != side[self.edges[:, 1]]
        return float(crossing.sum() if self.weights is None else self.weights[crossing].sum())


def cluster(machines: int, rack: int = 40) -> Instance:
    """Return machines of four GPUs in racks of 40 under one spine; each GPU, host and switch is a vertex of weight 1.

    Weights are bandwidths: 40 between the GPUs of a socket (two NVLinks), 16 from each GPU to the host (PCIe),
    10 from host to rack, 40 from rack to spine. With 3 % imbalance, 12 of 25 racks and six machines of the next
    cut 540, and 122 of 250 racks cut 4,880; METIS finds 680 and 4,960.
    """
    hosts = np.arange(machines) * 5 + 4
    racks = 5 * machines + np.arange(-(-machines // rack))
    spine = np.full(len(racks), racks[-1] + 1)
    links = [(hosts - 4, hosts - 3, 40), (hosts - 2, hosts - 1, 40)]
    links += [(hosts - gpu, hosts, 16) for gpu in (4, 3, 2, 1)]
    links += [(hosts, racks[np.arange(machines) // rack], 10), (racks, spine, 40)]
    edges = np.concatenate([np.column_stack([u, v]) for u, v, _ in links])
    weights = np.concatenate([np.full(len(u), weight) for u, _, weight in links])
    return Instance(f"cluster {machines:,} x 4", int(spine[0]) + 1, edges, weights)


def grid(side: int) -> Instance:
    number = np.arange(side * side).reshape(side, side)
    across = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    down = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    return Instance(f"grid {side}^2", side * side, np.concatenate([across, down]))


def shuffled(side: int) -> Instance:
    """Return the grid numbered at random; numbers row by row would lead to straight cuts."""
    plain = grid(side)
    number = np.random.default_rng(1).permutation(plain.vertices)
    return Instance(f"shuffled grid {side}^2", plain.vertices, number[plain.edges])


def geometric(vertices: int) -> Instance:
    """Return random points in the unit square, joined within 0.55 sqrt(ln n / n), as in the DIMACS challenge."""
    radius = 0.55 * math.sqrt(math.log(vertices) / vertices)
    cells = int(1 / radius)
    points = np.random.default_rng(1).random((vertices, 2))
    column, row = np.minimum((points * cells).astype(np.int64), cells - 1).T
    order = np.argsort(column * cells + row, kind="stable")
    first = np.searchsorted((column * cells + row)[order], np.arange(cells * cells + 1))
    edges = []
    for right, up in ((0, 0), (0, 1), (1, -1), (1, 0), (1, 1)):
        there = np.flatnonzero((column + right < cells) & (row + up >= 0) & (row + up < cells))
        cell = (column[there] + right) * cells + row[there] + up
        count = first[cell + 1] - first[cell]
        u = np.repeat(there, count)
        v = order[
            np.arange(len(u)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first[cell], count)
        ]
        near = ((points[u] - points[v]) ** 2).sum(axis=1) <= radius**2
        near &= (u < v) | (right != 0) | (up != 0)
        edges.append(np.column_stack([u, v])[near])
    return Instance(f"geometric {vertices:,}", vertices, np.concatenate(edges))


def recursive_matrix(scale: int, quarters: tuple[float, float, float], kind: str) -> Instance:
    """Return 2^scale vertices and up to eight times as many edges: few hubs, many leaves and isolated vertices.

    Each end of an edge is drawn bit by bit, both bits at once: 00, 01, 10 with these probabilities, else 11. Loops and
    repeated edges are dropped, and vertices numbered at random (R-MAT: Chakrabarti, Zhan and Faloutsos, SDM 2004).
    """
    random = np.random.default_rng(1)
    ends = np.zeros((2, 8 << scale), dtype=np.int64)
    for _ in range(scale):
        quarter = np.searchsorted(np.cumsum(quarters), random.random(ends.shape[1]), side="right")
        ends = 2 * ends + (quarter >> 1, quarter & 1)
    ends = np.sort(random.permutation(1 << scale)[ends], axis=0)
    return Instance(f"{kind} 2^{scale}", 1 << scale, np.unique(ends[:, ends[0] != ends[1]].T, axis=0))


def preferential(vertices: int, edges: int) -> Instance:
    """Return the graph of Barabási and Albert: each new vertex is joined to `edges` others, by their degrees."""
    random = np.random.default_rng(1)
    ends = list(range(edges))  # every vertex as often as it has edges
    rows = []
    for vertex in range(edges, vertices):
        others = {ends[i] for i in random.integers(0, len(ends), edges)}
        rows += [(other, vertex) for other in sorted(others)]
        ends += [*sorted(others), *[vertex] * len(others)]
    return Instance(f"preferential {vertices:,} x {edges}", vertices, np.array(rows))


def regular(vertices: int, degree: int) -> Instance:
    """Return random edges, `degree` at almost every vertex: loops and repeated edges are dropped."""
    random = np.random.default_rng(1)
    ends = np.sort(random.permutation(np.repeat(np.arange(vertices), degree)).reshape(-1, 2), axis=1)
    return Instance(
        f"regular {vertices:,} x {degree}", vertices, np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    )


def holes(side: int) -> Instance:
    """Return the grid of side^2 without a fifth of its vertices, drawn at random; edges weigh 1 to 100."""
    random = np.random.default_rng(1)
    plain = grid(side)
    kept = random.random(plain.vertices) >= 0.2
    edges = (np.cumsum(kept) - 1)[plain.edges[kept[plain.edges].all(axis=1)]]
    return Instance(f"grid with holes {side}^2", int(kept.sum()), edges, random.integers(1, 101, len(edges)))


def from_file(path: str) -> Instance:
    """Read a graph file with its edge weights; every vertex has weight 1."""
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "partition_metis.py"))
    num_vertices, edges, _ = example["read"](example["content"](path))
    ends, weights = edges[:, :2].astype(np.int64), edges[:, 2]
    return Instance(Path(path).stem, num_vertices, ends, None if (weights == 1).all() else weights)


CLUSTERS: dict[str, Callable[[], Instance]] = {
    f"cluster {machines:,} x 4": lambda machines=machines: cluster(machines) for machines in (1_000, 10_000)
}
OTHERS: dict[str, Callable[[], Instance]] = {
    **{f"grid {side}^2": lambda side=side: grid(side) for side in (10, 32, 100, 316, 1000)},
    **{f"shuffled grid {side}^2": lambda side=side: shuffled(side) for side in (32, 100, 316, 1000)},
    **{f"geometric {n:,}": lambda n=n: geometric(n) for n in (10**3, 10**4, 10**5, 10**6)},
}
HUBS: dict[str, Callable[[], Instance]] = {
    **{
        f"{kind} 2^{scale}": lambda scale=scale, quarters=quarters, kind=kind: recursive_matrix(
            scale, quarters, kind
        )
        for kind, quarters in (("RMAT", (0.57, 0.19, 0.19)), ("mild RMAT", (0.45, 0.22, 0.22)))
        for scale in (13, 15, 17, 20)
    },
    **{
        f"preferential {n:,} x {m}": lambda n=n, m=m: preferential(n, m)
        for n, m in ((10**4, 3), (10**4, 8), (10**5, 4))
    },
    **{f"regular {n:,} x 6": lambda n=n: regular(n, 6) for n in (10**4, 10**5, 10**6)},
    **{f"grid with holes {side}^2": lambda side=side: holes(side) for side in (100, 316, 1000)},
}
