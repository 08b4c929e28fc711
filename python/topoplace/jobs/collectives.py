"""Collectives: the groups of tasks that communicate in one operation, and the GB that each pair carries for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.patterns import Edges, edge_tuples, edges_of
from topoplace.jobs.requirements import MAX_EDGES, MAX_TASKS

Ints = NDArray[np.int64]

if TYPE_CHECKING:
    from topoplace.kernels import JobCollectives

    Shape = Literal["ring", "chain", "all"]

KINDS: Final = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send")
MAX_GIGABYTES: Final = 1e12
"""Maximum GB of a collective; more are refused as a mistake, such as bytes for GB."""

PATTERN_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"ring": "all_reduce", "tree": "all_reduce", "allreduce": "all_reduce", "clique": "all_to_all"}
)
"""The patterns whose edges are those of one collective of 1 GB among all tasks, and its kind."""


@dataclass(frozen=True, slots=True)
class Collective:
    """An operation in which a group of tasks exchanges data in each step of a job.

    The table says what `gigabytes` counts. For b of them among n tasks, it has the GB that each pair of neighbours
    carries, both directions together:

    | kind | `gigabytes` | carried |
    |---|---|---|
    | `all_reduce` | the buffer that each task has and that is summed | ring: 2 b (n - 1) / n |
    | `all_gather` | the result, to which each task gives 1 / n | ring: b (n - 1) / n |
    | `reduce_scatter` | the buffer that each task has, of whose sum it keeps 1 / n | ring: b (n - 1) / n |
    | `all_to_all` | what each task gives: 1 / n to each task, itself included | every pair: 2 b / n |
    | `broadcast` | what the first task gives to all others | chain: b |
    | `send` | what two tasks in sequence exchange, half of it each way | chain: b |

    With `shares`, a task gives b * shares[j] / sum(shares) to task j of an all_to_all, in place of b / n.

    In a ring, each task sends to the next one, and the last task to the first. Two tasks therefore carry twice as much:
    both halves of the ring run between them. A chain has no way back.

    Raises:
        JobGraphError: Names the invalid argument and its value.
    """

    kind: str
    """Kind: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or send."""
    tasks: tuple[int, ...]
    """At least two tasks, in the order of their ring or chain."""
    gigabytes: float
    """GB in each step of the job, above 0; several operations of one kind in a step count as one."""
    dimension: str = "all"
    """The dimension of parallelism, such as "tensor", whose collectives all run at the same time."""
    shares: tuple[float, ...] = ()
    """Weight of each task in an all_to_all of unequal parts, such as with popular experts; () for equal parts."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        _checks.one_of(self.kind, "kind", KINDS, JobGraphError)
        keep(self, "tasks", _checked_tasks(self.tasks))
        most = MAX_GIGABYTES
        keep(self, "gigabytes", _checks.positive(self.gigabytes, "gigabytes", JobGraphError, high=most))
        _checks.text(self.dimension, "dimension", JobGraphError)
        keep(self, "shares", _checked_shares(self.shares, self.kind, len(self.tasks)))


def _checked_shares(shares: Iterable[Any], kind: str, n: int) -> tuple[float, ...]:
    """Return the shares of n tasks, () if they are equal."""
    given = tuple(
        _checks.real(share, f"shares[{i}]", JobGraphError, high=MAX_GIGABYTES)
        for i, share in enumerate(_checks.ordered(shares, "shares", JobGraphError))
    )
    if given and kind != "all_to_all":
        raise JobGraphError(
            f"shares = {_checks.shown(given)}: the tasks of an all_to_all have some, not of {kind}"
        )
    if given and len(given) != n:
        raise JobGraphError(f"shares has {len(given)} numbers for {n} tasks")
    if given and not any(given):
        raise JobGraphError(f"shares = {_checks.shown(given)}: all are 0")
    return given if len(set(given)) > 1 else ()


def _checked_tasks(tasks: Iterable[Any]) -> tuple[int, ...]:
    given = _checks.ordered(tasks, "tasks", JobGraphError)
    numbers = given
    if set(map(type, given)) != {int} or min(given) < 0 or max(given) >= MAX_TASKS:
        numbers = tuple(
            _checks.integer(task, f"tasks[{i}]", JobGraphError, low=0, high=MAX_TASKS - 1)
            for i, task in enumerate(given)
        )
    if len(numbers) < 2:
        raise JobGraphError(f"tasks = {_checks.shown(numbers)}: a collective has at least two tasks")
    if len(set(numbers)) < len(numbers):
        first: dict[int, int] = {}
        i, task = next((i, task) for i, task in enumerate(numbers) if first.setdefault(task, i) != i)
        raise JobGraphError(f"tasks[{i}] = {task} repeats tasks[{first[task]}]")
    return numbers


def checked(collectives: Iterable[Any], num_tasks: int) -> tuple[Collective, ...]:
    """Return the collectives of a job as a tuple; JobGraphError names an item that is no collective or has an unknown
    task.
    """
    given = _checks.ordered(collectives, "collectives", JobGraphError)
    for i, one in enumerate(given):
        _checks.instance(one, Collective, f"collectives[{i}]", JobGraphError)
        if (last := max(one.tasks)) >= num_tasks:
            place = f"collectives[{i}].tasks[{one.tasks.index(last)}]"
            raise JobGraphError(f"{place} = {last} is not in 0..{num_tasks - 1}")
    return given


def implied(name: str, num_tasks: int, edges: Edges) -> tuple[Collective, ...]:
    """Return the collectives of a job that states none.

    A job with the name and the edges of a pattern in `PATTERN_KINDS` has the pattern's collective. Any other job sends
    along its edges.
    """
    if name in PATTERN_KINDS and edges and edges == edges_of(name, (num_tasks,)):
        return of_pattern(name, num_tasks)
    return tuple([Collective("send", (a, b), weight) for a, b, weight in edges])


def of_pattern(name: str, num_tasks: int) -> tuple[Collective, ...]:
    """Return the collective of a pattern of `PATTERN_KINDS` with at least two tasks."""
    return (Collective(PATTERN_KINDS[name], tuple(range(num_tasks)), 1.0),)


def dimensions(collectives: Iterable[Collective]) -> Mapping[str, tuple[tuple[int, ...], ...]]:
    """Return the groups of each dimension, both in the order of their first collective.

    A group that is within another one of its dimension, such as the first and the last stage of a pipeline, is left
    out.
    """
    found: dict[str, dict[frozenset[int], tuple[int, ...]]] = {}
    for one in collectives:
        found.setdefault(one.dimension, {}).setdefault(frozenset(one.tasks), one.tasks)
    return MappingProxyType({name: _not_within_others(groups) for name, groups in found.items()})


def _not_within_others(groups: Mapping[frozenset[int], tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    if len(set(map(len, groups))) < 2:  # none is within another one of equal size
        return tuple(groups.values())
    larger: dict[int, list[frozenset[int]]] = {}
    kept: set[frozenset[int]] = set()
    for group in sorted(groups, key=len, reverse=True):
        if not any(group < other for other in larger.get(groups[group][0], ())):
            kept.add(group)
            for task in group:
                larger.setdefault(task, []).append(group)
    return tuple([tasks for group, tasks in groups.items() if group in kept])


class Batch(NamedTuple):
    """Collectives of one kind and number of tasks, in one dimension."""

    kind: str
    tasks: Ints
    """(c, n) the tasks of each collective, in the order of its ring or chain."""
    carried: NDArray[np.float64]
    """(c,) the GB between two neighbours, both directions together; the smallest of all pairs if they differ."""
    received: NDArray[np.float64] | None = None
    """(c, n) the GB that each task gets from each other task, if tasks get different amounts; else None."""

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the positions, among a collective's tasks, of both ends of each pair that communicates."""
        return _pairs(_CARRIED[self.kind][0], self.tasks.shape[1])


_gigabytes, _tasks = attrgetter("gigabytes"), attrgetter("tasks")


def batches(collectives: Iterable[Collective]) -> Mapping[str, tuple[Batch, ...]]:
    """Return the collectives of each dimension in batches of one kind and size, in the order of first collectives."""
    of_dimension: dict[str, list[Collective]] = {}
    for one in collectives:
        of_dimension.setdefault(one.dimension, []).append(one)
    found = zip(of_dimension, map(tuple, map(_batches_of, of_dimension.values())), strict=True)
    return MappingProxyType(dict(found))


def _batches_of(collectives: Iterable[Collective]) -> list[Batch]:
    """Return the batches of collectives that have the same kind and number of tasks, and shares or none."""
    alike: dict[tuple[str, int, bool], list[Collective]] = {}
    for one in collectives:
        alike.setdefault((one.kind, len(one.tasks), bool(one.shares)), []).append(one)
    return list(starmap(_batch, alike.items()))


def _batch(of: tuple[str, int, bool], alike: Sequence[Collective]) -> Batch:
    kind, n, _ = of
    gigabytes = np.array(list(map(_gigabytes, alike)))
    tasks = np.array(list(map(_tasks, alike)))
    if not alike[0].shares:
        _, x, y = _CARRIED[kind]
        return Batch(kind, tasks, gigabytes * ((x * n + y) / n))
    shares = np.array([one.shares for one in alike])
    received = gigabytes[:, None] * (shares / shares.sum(axis=1, keepdims=True))
    return Batch(kind, tasks, 2 * received.min(axis=1), received)


_KIND_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "all_reduce": "reduce",
        "all_gather": "ring",
        "reduce_scatter": "ring",
        "broadcast": "chain",
        "all_to_all": "pairs",
        "send": "sends",
    }
)
"""The kind of each collective in `kernels.JobCollectives`."""


def arrays_of(traffic: Mapping[str, Sequence[Batch]]) -> JobCollectives:
    """Return the collectives for the kernels; each dimension is one phase."""
    from topoplace.kernels.job_traffic import KINDS as WAYS
    from topoplace.kernels.job_traffic import JobCollectives

    phases: list[list[Any]] = []
    for dimension in traffic.values():
        phases.append([])
        for kind, *columns in dimension:
            phases[-1].append((WAYS.index(_KIND_OF[kind]), *columns))
    return JobCollectives.of_batches(phases)


# ---- what each pair of tasks carries --------------------------------------------------------------------------


def summed_edges(collectives: Sequence[Collective]) -> Edges:
    """Return the GB that each pair of tasks carries for all collectives, sorted: (a, b, GB) with a < b.

    Raise JobGraphError if the collectives have more than `MAX_EDGES` pairs.
    """
    return edge_tuples(*summed(collectives))


def summed(collectives: Sequence[Collective]) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return the result of `summed_edges` as three arrays, a, b and GB of each pair; errors are the same."""
    listed = _batches_of(collectives)
    total = sum(len(one.tasks) * _number_of_pairs(one.kind, one.tasks.shape[1]) for one in listed)
    if total > MAX_EDGES:
        raise JobGraphError(f"collectives have {total} pairs of tasks; at most {MAX_EDGES} are possible")
    if not total:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    keys, gigabytes = zip(*map(_carried, listed), strict=True)
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums: NDArray[np.float64] = np.bincount(place, np.concatenate(gigabytes)).astype(float)
    some = sums > 0  # parts of the smallest floats are 0
    a, b = np.divmod(pairs[some], MAX_TASKS)
    return a, b, sums[some]


def _carried(batch: Batch) -> tuple[Ints, NDArray[np.float64]]:
    """Return a key of each pair of tasks that communicate, and the GB, for the collectives of a batch."""
    here, there = batch.pairs
    first, second = batch.tasks[:, here], batch.tasks[:, there]
    keys = np.minimum(first, second) * MAX_TASKS + np.maximum(first, second)
    if batch.received is None:
        return keys.ravel(), np.repeat(batch.carried, len(here))
    return keys.ravel(), (batch.received[:, here] + batch.received[:, there]).ravel()


def _pairs(shape: Shape, n: int) -> tuple[Ints, Ints]:
    """Return the places of both ends of each pair in the tasks of a collective."""
    if shape == "all":
        return np.triu_indices(n, 1)
    here = np.arange(n if shape == "ring" else n - 1)
    return here, (here + 1) % n


def _number_of_pairs(kind: str, n: int) -> int:
    return {"ring": n, "chain": n - 1, "all": n * (n - 1) // 2}[_CARRIED[kind][0]]


_CARRIED: Final[Mapping[str, tuple[Shape, int, int]]] = {
    "all_reduce": ("ring", 2, -2),
    "all_gather": ("ring", 1, -1),
    "reduce_scatter": ("ring", 1, -1),
    "all_to_all": ("all", 0, 2),
    "broadcast": ("chain", 1, 0),
    "send": ("chain", 1, 0),
}
"""The pairs that communicate in a collective, and x and y: among n tasks, each carries (x n + y) / n of its GB."""
