"""Send all supplies to the demands at the least cost: `min_cost_flow_dimacs.py network.min flow.txt`.

The file is in the format of the first DIMACS challenge (1991). The first letter of a line gives its meaning: `c` is a
comment; `p min NODES ARCS` is the problem; `n NODE SUPPLY` is what a node sends, or receives if it is below zero;
`a TAIL HEAD LOWER CAPACITY COST` is an arc, where a capacity of -1 means no limit. Nodes are numbered from 1. The
solution is `s COST` and, for each arc, `f TAIL HEAD FLOW`. Without a file, the program solves a small problem.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np

from topoplace import kernels

NETWORK = """c four nodes, two ways
p min 4 5
n 1 4
n 4 -4
a 1 2 0 4 2
a 1 3 0 2 2
a 2 3 0 2 1
a 2 4 0 3 3
a 3 4 0 5 1
"""


def read(text: str) -> dict[str, Any]:
    """Return the network as the arguments of `kernels.min_cost_flow`, in which nodes are numbered from 0."""
    lines = [
        line.split() for line in text.splitlines() if line.strip() and line.split()[0] in ("p", "n", "a")
    ]
    problem, num_nodes, num_arcs = lines[0][1], *map(int, lines[0][2:])
    arcs = np.array([line[1:] for line in lines if line[0] == "a"], dtype=np.int64).reshape(-1, 5)
    if problem != "min" or len(arcs) != num_arcs:
        raise ValueError(f"a problem {problem!r} with {num_arcs} arcs is promised; {len(arcs)} follow")
    supply = np.zeros(num_nodes, dtype=np.int64)
    for node, sent in (map(int, line[1:]) for line in lines if line[0] == "n"):
        if not 1 <= node <= num_nodes:
            raise ValueError(f"NODE = {node} is not in 1..{num_nodes}")
        supply[node - 1] = sent
    tail, head, lower, capacity, cost = arcs.T
    limits = np.where(capacity == -1, kernels.INFINITE, capacity)
    ends = {"tail": tail - 1, "head": head - 1}
    return {
        "num_nodes": num_nodes,
        **ends,
        "lower": lower,
        "capacity": limits,
        "cost": cost,
        "supply": supply,
    }


def content(path: str) -> str:
    """Return the text of a file, gzipped or not."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if path.endswith(".gz") else data).decode("ascii")


if __name__ == "__main__":
    source, *target = sys.argv[1:] or [""]
    network = read(content(source) if source else NETWORK)
    found = kernels.min_cost_flow(**network)
    if found.status != "optimal":  # supplies that cannot leave these nodes, or a cycle of ever lower cost
        sys.exit(f"{found.status}: nodes {(found.cut + 1).tolist()}, arcs {(found.cycle + 1).tolist()}")
    print(f"{network['num_nodes']} nodes, {len(found.flow)} arcs: cost {found.cost}, by {found.algorithm}")
    rows = np.column_stack([network["tail"] + 1, network["head"] + 1, found.flow]).tolist()
    for path in target:
        text = "".join(f"f {tail} {head} {flow}\n" for tail, head, flow in rows)
        Path(path).write_text(f"s {found.cost}\n{text}", "ascii")
