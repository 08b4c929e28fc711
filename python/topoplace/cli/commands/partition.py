"""`topoplace partition` splits a graph, given as a file in METIS' format, into two balanced sides."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, options, reading, writing

if TYPE_CHECKING:
    from topoplace.kernels import Bipartition
    from topoplace.text_formats.metis import GraphFile

_NOT_FOUND = 1


def add(commands: Any) -> None:
    """Add `topoplace partition` and its arguments to the command line."""
    parser = options.command(
        commands,
        "partition",
        "split a graph's vertices into two sides with little edge weight between them",
        _run,
        examples=["topoplace partition mesh.graph --imbalance 0.01 -o sides.txt"],
        negative="no balanced split was found",
    )
    options.add_problem_file(parser, "graph", "graph in METIS' format")
    parser.add_argument(
        "--fraction", type=float, default=0.5, help="share of the weight meant for side 0 (default: 0.5)"
    )
    parser.add_argument(
        "--imbalance",
        type=float,
        default=0.03,
        help="how much more than its share a side may hold (default: 0.03)",
    )
    options.add_count(parser, "--starts", 16, "number of starts on the coarsest level")
    parser.add_argument(
        "--cycles",
        type=int,
        default=1,
        metavar="N",
        help="number of refinement cycles; more cut less (default: 1)",
    )
    options.add_seed(parser, "the starts")
    options.add_timeout(parser, "return the best split so far")
    options.add_solution_file(parser, "SIDES", "the side of each vertex, one per line")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import kernels
    from topoplace.errors import InfeasibleError, SearchTimeoutError
    from topoplace.text_formats import metis

    data = reading.unpacked(arguments.graph)
    with reading.errors_of(arguments.graph):
        file = metis.parse(data)
    inputs = [("FILE", arguments.graph)]
    output = writing.file(arguments.output, inputs=inputs) if arguments.output else None
    before = time.perf_counter()
    try:
        with (
            flags.named(fraction="--fraction", imbalance="--imbalance", cycles="--cycles"),
            Progress("splitting", limit_s=arguments.timeout),
        ):
            found = kernels.bipartition(
                file.graph,
                fraction=arguments.fraction,
                imbalance=arguments.imbalance,
                vertex_weights=file.vertex_weights,
                starts=arguments.starts,
                cycles=arguments.cycles,
                seed=arguments.seed,
                timeout=arguments.timeout,
            )
    except (InfeasibleError, SearchTimeoutError) as error:
        if arguments.json:
            writing.as_json({"reason": str(error)})
        else:
            print(f"not split: {error}")
        return _NOT_FOUND
    facts = _facts(file, found, time.perf_counter() - before)
    if output:
        writing.write(output, metis.format_sides(found.side))
    _report(facts, arguments)
    return 0


def _facts(file: GraphFile, found: Bipartition, seconds: float) -> dict[str, Any]:
    import numpy as np

    sides = found.side.astype(np.int64)
    weights = np.ones(len(sides), dtype=np.int64) if file.vertex_weights is None else file.vertex_weights
    held = int(weights[sides == 1].sum())
    return {
        "vertices": file.graph.num_vertices,
        "edges": file.graph.num_edges,
        "cut": found.cut,
        "side_vertices": np.bincount(sides, minlength=2).tolist(),
        "side_weights": [int(weights.sum()) - held, held],
        "seconds": seconds,
        "proven": found.optimal,
        "complete": found.complete,
    }


def _report(facts: dict[str, Any], arguments: argparse.Namespace) -> None:
    from topoplace.experiments.report import tables

    if arguments.json:
        writing.as_json(facts)
        return
    rows = [
        ("cut", facts["cut"]),
        *(
            (f"side {side}", f"{facts['side_vertices'][side]} vertices, weight {facts['side_weights'][side]}")
            for side in (0, 1)
        ),
        ("time ms", 1e3 * facts["seconds"]),
        ("proven", "yes" if facts["proven"] else "no" if facts["complete"] else "no: stopped by the timeout"),
    ]
    tables.show(("", "value"), rows, f"{facts['vertices']} vertices, {facts['edges']} edges, in two")
