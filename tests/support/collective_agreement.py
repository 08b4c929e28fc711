"""How scores of GPU sets agree with what NCCL's own search plans for them; as a program, print the table."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import topoplace as tp
from topoplace import collective, objectives

Score = Callable[[tp.Topology, Sequence[int]], float]
_TIE = 0.1
_DRAWS = 300
_GOOD = 0.95


def _sum_of_pairs(topology: tp.Topology, gpus: Sequence[int]) -> float:
    return objectives.aggregated_bandwidth(tp.JobGraph.clique(len(gpus)), gpus, topology)


def _eq_2(topology: tp.Topology, gpus: Sequence[int]) -> float:
    scores = objectives.link_scores(tp.JobGraph.clique(len(gpus)).edges, gpus, topology)
    return scores["effective_bandwidth"]


def _broadcast(topology: tp.Topology, gpus: Sequence[int]) -> float:
    return float(collective.broadcast_bandwidth(topology, gpus))


def _optimal(topology: tp.Topology, gpus: Sequence[int]) -> float:
    return float(collective.optimal_bandwidth(topology, gpus) * Fraction(len(gpus) - 1, len(gpus)))


SCORES: Mapping[str, Score] = {
    "sum of all pairs' bandwidths": _sum_of_pairs,
    "MAPA, eq. 2": _eq_2,
    "`broadcast_bandwidth`": _broadcast,
    "`optimal_bandwidth` x (n - 1) / n": _optimal,
    "`ring_bandwidth`": collective.ring_bandwidth,
}


class Planned(NamedTuple):
    """What NCCL plans for one set of GPUs."""

    machine: str
    gpus: tuple[int, ...]
    gb_per_s: float


def machines(shared: Path) -> dict[str, tp.Topology]:
    """Return the machines of the reference data by name."""
    paths = sorted((shared / "data/collectives/machines").glob("*.xml"))
    return {path.stem: tp.Topology.from_nccl_xml(path.read_text("utf-8")) for path in paths}


def records(shared: Path, name: str) -> Any:
    """Return the content of a file of the reference data."""
    return json.loads((shared / "data/collectives" / name).read_text("utf-8"))


def planned(shared: Path) -> list[Planned]:
    """Return what NCCL plans for all sets."""
    rows = records(shared, "nccl_search.json")["records"]
    return [Planned(row["machine"], tuple(row["gpus"]), row["nccl_ring_bw"]) for row in rows]


class Agreement(NamedTuple):
    """How a score agrees with NCCL's plans, over all machines."""

    within_tie: float
    """Share of the sets whose score is within 10 % of NCCL's figure."""
    correlation: float
    """Mean rank correlation within sets of equal size on one machine, where NCCL's figures differ by over 10 %."""
    good_choices: float
    """Share of random free sets of which the score's first choice is within 5 % of the best."""


def agreement(score: Score, sets: Sequence[Planned], topologies: Mapping[str, tp.Topology]) -> Agreement:
    """Return how `score` agrees with NCCL on `sets`."""
    scores = {(one.machine, one.gpus): score(topologies[one.machine], one.gpus) for one in sets}
    near = [abs(scores[one.machine, one.gpus] / one.gb_per_s - 1) <= _TIE for one in sets]
    by_size: dict[tuple[str, int], list[Planned]] = defaultdict(list)
    for one in sets:
        by_size[one.machine, len(one.gpus)].append(one)
    correlations = []
    for group in by_size.values():
        theirs = [one.gb_per_s for one in group]
        if max(theirs) > (1 + _TIE) * min(theirs):
            correlations.append(_rank_correlation([scores[one.machine, one.gpus] for one in group], theirs))
    choices = list(_choices(by_size, scores))
    return Agreement(float(np.mean(near)), float(np.mean(correlations)), float(np.mean(choices)))


def _choices(
    by_size: Mapping[tuple[str, int], Sequence[Planned]],
    scores: Mapping[tuple[str, tuple[int, ...]], float],
) -> Iterator[bool]:
    """Yield, for random free sets of each machine, whether the score's first choice is a good one."""
    for machine in sorted({name for name, _ in by_size}):
        draw = random.Random(machine)
        largest = max(size for name, size in by_size if name == machine)
        for _ in range(_DRAWS):
            free = set(draw.sample(range(largest), draw.randint(3, largest)))
            size = draw.randint(2, len(free) - 1)
            offers = [one for one in by_size[machine, size] if free.issuperset(one.gpus)]
            chosen = max(offers, key=lambda one: scores[one.machine, one.gpus])
            yield chosen.gb_per_s >= _GOOD * max(one.gb_per_s for one in offers)


def _rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return Spearman's rank correlation, in which equal values share their mean rank; 0 if all of ours are equal."""
    if max(ours) == min(ours):
        return 0.0
    return float(np.corrcoef(_ranks(ours), _ranks(theirs))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    array = np.round(np.asarray(values), 6)
    return [float((array < value).sum() + ((array == value).sum() - 1) / 2) for value in array]


def table(shared: Path) -> list[str]:
    """Return the rows of the table in docs/collectives.md."""
    sets, topologies = planned(shared), machines(shared)
    rows = []
    for name, score in SCORES.items():
        found = agreement(score, sets, topologies)
        cells = (f"{found.within_tie:.1%}", f"{found.correlation:.2f}", f"{found.good_choices:.1%}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


if __name__ == "__main__":
    repository = Path(__file__).parents[2]
    folder = Path(os.environ.get("TOPOPLACE_SHARED", repository.parent / "shared"))
    sys.stdout.write("\n".join(table(folder)) + "\n")
