"""`topoplace flow` solves a minimum-cost flow problem from a file in DIMACS' format."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import options, reading, writing

if TYPE_CHECKING:
    from topoplace.kernels import FlowSolution
    from topoplace.text_formats.dimacs import NetworkFile

ALGORITHMS = ("auto", "cost_scaling", "network_simplex", "successive_shortest_path", "cycle_canceling")
_NOT_SOLVED = 1


def add(commands: Any) -> None:
    """Add `topoplace flow` and its arguments to the command line."""
    parser = options.command(
        commands,
        "flow",
        "send all supplies to the demands at the least cost",
        _run,
        examples=["topoplace flow network.min -o flow.sol"],
        negative="no flow of least cost was found: infeasible, unbounded, or out of time",
    )
    options.add_problem_file(parser, "network", "network in DIMACS' format (.min)")
    parser.add_argument(
        "--algorithm", choices=ALGORITHMS, default="auto", help="method (default: %(default)s)"
    )
    options.add_timeout(parser, "give up")
    options.add_solution_file(parser, "SOLUTION", "each arc's flow, in DIMACS' format")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import kernels
    from topoplace.text_formats import dimacs

    data = reading.unpacked(arguments.network)
    inputs = [("FILE", arguments.network)]
    output = writing.file(arguments.output, inputs=inputs) if arguments.output else None
    with reading.errors_of(arguments.network):
        file = dimacs.parse(data)
        before = time.perf_counter()
        with Progress("solving", limit_s=arguments.timeout):
            found = kernels.min_cost_flow(
                file.num_nodes,
                file.tail,
                file.head,
                file.capacity,
                file.cost,
                file.supply,
                lower=file.lower,
                algorithm=arguments.algorithm,
                timeout=arguments.timeout,
            )
        seconds = time.perf_counter() - before
    solved = found.status == "optimal"
    if output and solved:
        writing.write(output, dimacs.format_solution(file.tail, file.head, found.flow, found.cost))
    _report(_facts(file, found, seconds), arguments)
    return 0 if solved else _NOT_SOLVED


def _facts(file: NetworkFile, found: FlowSolution, seconds: float) -> dict[str, Any]:
    """Return the results to print, by name; nodes and arcs are numbered from 1 as in the file."""
    solved = found.status == "optimal"
    return {
        "nodes": file.num_nodes,
        "arcs": len(file.tail),
        "status": found.status,
        "cost": found.cost if solved else None,
        "arcs_with_flow": int((found.flow != 0).sum()) if solved else None,
        "algorithm": found.algorithm,
        "steps": found.steps,
        "seconds": seconds,
        "cut": (found.cut + 1).tolist(),
        "cycle": (found.cycle + 1).tolist(),
    }


def _report(facts: dict[str, Any], arguments: argparse.Namespace) -> None:
    from topoplace.experiments.report import tables

    if arguments.json:
        writing.as_json(facts)
        return
    rows: list[tuple[str, Any]] = [("status", facts["status"])]
    if facts["status"] == "optimal":
        rows += [("cost", facts["cost"]), ("arcs with flow", facts["arcs_with_flow"])]
    if facts["status"] == "infeasible":
        rows.append(("nodes that supply more than can leave them", writing.first_of(facts["cut"])))
    if facts["status"] == "unbounded":
        rows.append(
            ("arcs of a cycle around which the cost falls without limit", writing.first_of(facts["cycle"]))
        )
    rows += [("time ms", 1e3 * facts["seconds"]), ("algorithm", facts["algorithm"])]
    tables.show(("", "value"), rows, f"{facts['nodes']} nodes, {facts['arcs']} arcs")
