"""Our kernels next to programs for subgraphs that you have built: `--vf3 PATH --vf3l PATH --ri PATH --glasgow PATH`.

`python benchmarks/bench_match_programs.py --vf3 ~/vf3lib/bin/vf3` prints a row for each kind of question and program. A
program's time is the CPU time of its process without that for one edge in the same target, so that neither starting
nor reading counts.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import networkx as nx

import bench_match_peers as match_peers
from duels.duel import OURS, Duel, Outcome, outcome
from duels.page_text import table
from libraries.match_programs import SOLVERS, Solver
from timing.measure import batch_of, timed
from topoplace import kernels

ROUNDS = 5
SHORTEST = 0.001  # CPU seconds that the clock of processes tells apart
LISTED, COUNTED = "enumerate_subgraphs", "count_subgraphs"
EDGE = nx.path_graph(2)
"""The pattern whose time is taken off a program's."""
PIECES = ((7, 0), (7, 5), (8, 0), (9, 1))  # vertices, seed


class Question(NamedTuple):
    """A pattern to find in a target; both undirected, without labels."""

    pattern: nx.Graph
    target: nx.Graph

    @classmethod
    def of(cls, pattern: str, size: int, target: str) -> Question:
        """Return one of the patterns and targets of `bench_match_peers`."""
        return cls(match_peers.PATTERNS[pattern](size), match_peers.targets()[target])


class Group(NamedTuple):
    """Questions whose times are averaged."""

    name: str
    induced: bool
    """Whether two vertices without an edge must be mapped to two without one."""
    questions: Callable[[], list[Question]]


def regular() -> list[Question]:
    """Return patterns of jobs on machines and tori, with 180,000 to 550,000 mappings."""
    complete, torus = "16 GPUs complete", "4x4x4 torus"
    kinds = (("ring", 5, complete), ("clique", 5, complete), ("chain", 7, torus), ("ring", 8, torus))
    return [Question.of(*kind) for kind in kinds]


def induced() -> list[Question]:
    """Return patterns of jobs in tori, with 65,000 to 1,500,000 induced mappings."""
    kinds = (("ring", 12, "8x8 torus"), ("chain", 8, "4x4x4 torus"), ("ring", 8, "4x4x4 torus"))
    return [Question.of(*kind) for kind in kinds]


def irregular() -> list[Question]:
    """Return pieces of a random geometric graph of 400 vertices, which hardly have symmetries."""
    whole = nx.random_geometric_graph(400, 0.1, seed=1)
    return [Question(piece(whole, size, seed), whole) for size, seed in PIECES]


def piece(whole: nx.Graph, size: int, seed: int) -> nx.Graph:
    """Return a connected piece of a graph, grown by neighbours drawn at random."""
    draws = random.Random(seed)
    inside = [draws.randrange(len(whole))]
    while len(inside) < size:
        around = {neighbour for vertex in inside for neighbour in whole[vertex]}
        inside.append(draws.choice(sorted(around - set(inside))))
    return nx.convert_node_labels_to_integers(whole.subgraph(sorted(inside)))


GROUPS = (
    Group("ring(5) and clique(5) in 16 GPUs, chain(7) and ring(8) in a 4x4x4 torus", False, regular),
    Group("induced: ring(12) in an 8x8 torus, chain(8) and ring(8) in a 4x4x4 torus", True, induced),
    Group("induced: 4 pieces of 7 to 9 vertices of a random geometric graph of 400", True, irregular),
)


class Files(NamedTuple):
    """A pattern, a target and the edge that is taken off, in a program's format."""

    pattern: Path
    target: Path
    edge: Path


def figures(
    question: Question, induced: bool, programs: Mapping[str, tuple[Solver, Path]]
) -> dict[str, list[float]]:
    """Return CPU seconds in each round, in turn: ours by kernel, then each program's.

    A program's time is that of its process without that for one edge in the same target: starting and reading count
    in both. It visits each mapping, counts it and keeps none. AssertionError if the numbers of mappings differ.
    """
    graphs = [kernels.Graph.from_edges(len(graph), edges_of(graph)) for graph in question]
    ours: dict[str, Any] = {
        LISTED: partial(kernels.enumerate_subgraphs, *graphs, induced=induced),
        COUNTED: partial(kernels.count_subgraphs, *graphs, induced=induced),
    }
    number = ours[COUNTED]()
    batches = {kernel: batch_of(run) for kernel, run in ours.items()}
    found: dict[str, list[float]] = {name: [] for name in (*ours, *programs)}
    with written(question, programs) as files:
        for _ in range(ROUNDS):
            for kernel, run in ours.items():
                found[kernel].append(timed(run, batches[kernel])[0])
            for name, (solver, program) in programs.items():
                spent, counted = asked(solver, program, induced, files[name].pattern, files[name].target)
                started, _ = asked(solver, program, induced, files[name].edge, files[name].target)
                if counted != number:
                    raise AssertionError(f"{name} counts {counted}, we {number} (induced: {induced})")
                found[name].append(max(SHORTEST, spent - started))
    return found


@contextmanager
def written(question: Question, programs: Mapping[str, tuple[Solver, Path]]) -> Iterator[dict[str, Files]]:
    """Write a question for each program, for as long as the context lasts."""
    with TemporaryDirectory() as folder:
        files = {
            name: Files(*(Path(folder, f"{name}-{part}") for part in Files._fields)) for name in programs
        }
        for name, (solver, _) in programs.items():
            for graph, path in zip((*question, EDGE), files[name], strict=True):
                text = solver.text(len(graph), edges_of(graph))
                path.write_text(text, encoding="utf-8")
        yield files


def edges_of(graph: nx.Graph) -> list[tuple[int, int]]:
    """Return each edge once, sorted."""
    return sorted((min(edge), max(edge)) for edge in graph.edges)


def asked(solver: Solver, program: Path, induced: bool, pattern: Path, target: Path) -> tuple[float, int]:
    """Return the CPU seconds of a process, and the number of mappings that it prints; OSError if it fails."""
    command = [program, *solver.arguments(induced, pattern, target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise OSError(f"{program.name} ended with exit code {process.returncode}: {printed}")
    return usage.ru_utime + usage.ru_stime, solver.count(printed)


def row(found: Mapping[str, list[float]], kernel: str, name: str) -> dict[str, list[float]]:
    """Return the figures of a kernel of ours and of one program, as a duel has them."""
    return {OURS: found[kernel], name: found[name]}


def outcomes(programs: Mapping[str, tuple[Solver, Path]]) -> Iterator[Outcome]:
    """Yield how our kernels compare with each program, by kind of question."""
    for group in GROUPS:
        found = [figures(question, group.induced, programs) for question in group.questions()]
        for kernel, how in ((LISTED, "listed"), (COUNTED, "counted")):
            for name in programs:
                duel = Duel(kernel, f"{group.name}: {how}", [name], [], list)
                yield outcome(duel, [row(one, kernel, name) for one in found])


def main(arguments: list[str]) -> int:
    """Print the table; return 2 if no program is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in SOLVERS:
        parser.add_argument(
            f"--{name.lower()}", type=Path, metavar="PATH", dest=name, help=f"{name}'s program"
        )
    given = {name: path for name, path in vars(parser.parse_args(arguments)).items() if path}
    if not given:
        parser.error("no program is given")
    print(table(list(outcomes({name: (SOLVERS[name], path) for name, path in given.items()}))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
