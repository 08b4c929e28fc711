"""Split a graph, given as a file in METIS' format, into two balanced sides: `partition_metis.py mesh.graph sides.txt`.

The first line has the numbers of vertices and edges, and may have a code of three digits: 1?? means that vertices have
sizes, ?1? that they have weights, ??1 that edges have weights. Each further line is a vertex: its size, its weight, and
its neighbours, numbered from 1, each followed by the weight of the edge (METIS 5.1 manual, 4.1). Chaco, Walshaw's
archive and KaHIP use the format, too. Without a file, the program splits a small graph.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

from topoplace import kernels

GRAPH = "6 7\n2 3\n1 3\n1 2 4\n3 5 6\n4 6\n4 5\n"  # two triangles with an edge between them


def read(text: str) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of vertices, the edges (each its lower end, its higher end, its weight), and vertex weights."""
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("%")]
    (num_vertices, num_edges), (code, *constraints) = map(int, lines[0][:2]), map(int, lines[0][2:] or [0])
    if constraints not in ([], [1]):
        raise ValueError(f"{constraints[0]} weights for each vertex; sides are balanced by one")
    if len(lines) <= num_vertices:
        raise ValueError(f"{len(lines) - 1} lines of vertices; the first line promises {num_vertices}")
    has_sizes, has_weights, has_edge_weights = (code // unit % 10 for unit in (100, 10, 1))
    weights = np.ones(num_vertices, dtype=np.int64)
    ends: list[tuple[int, int, int]] = []
    for vertex, words in enumerate(lines[1 : num_vertices + 1]):
        numbers = list(map(int, words))[has_sizes:]
        if has_weights:
            weights[vertex] = numbers.pop(0)
        neighbours = numbers[:: 1 + has_edge_weights]
        edge_weights = numbers[1::2] if has_edge_weights else [1] * len(neighbours)
        ends += ((vertex, other - 1, one) for other, one in zip(neighbours, edge_weights, strict=True))
    edges = sorted((low, high, weight) for low, high, weight in ends if low < high)
    if edges != sorted((low, high, weight) for high, low, weight in ends if low < high):
        raise ValueError("an edge is not named by both of its ends, or not with the same weight")
    if len(edges) != num_edges or 2 * num_edges != len(ends):
        raise ValueError(f"{len(ends)} neighbours; the first line promises {num_edges} edges, two for each")
    return num_vertices, np.array(edges, dtype=float).reshape(-1, 3), weights


def content(path: str) -> str:
    """Return the text of a file, gzipped or not."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if path.endswith(".gz") else data).decode("ascii")


if __name__ == "__main__":
    source, *target = sys.argv[1:] or [""]
    num_vertices, edges, weights = read(content(source) if source else GRAPH)
    graph = kernels.Graph.from_edges(num_vertices, edges)
    found = kernels.bipartition(graph, imbalance=0.03, vertex_weights=weights)
    held = np.bincount(found.side, weights, minlength=2)
    print(
        f"{num_vertices} vertices, {len(edges)} edges: cut {found.cut:g}, sides of weight {held[0]:g} and {held[1]:g}"
    )
    for path in target:  # one side per line, as METIS writes them
        Path(path).write_text("".join(f"{side}\n" for side in found.side.tolist()), "ascii")
