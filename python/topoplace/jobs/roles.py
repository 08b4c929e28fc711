"""Roles: one job made of several, such as prefill and decode of an inference service, and the traffic between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, Final, cast

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.collectives import MAX_GIGABYTES, Collective
from topoplace.jobs.groups import MACHINE, Group
from topoplace.jobs.requirements import FIELDS, MAX_TASKS

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph

MAX_PAIRS: Final = 1 << 20
"""Maximum number of pairs of tasks of two roles that send; a larger number takes too much memory."""
_OF_ITS_TASKS: Final = (
    "name",
    "groups",
    "within",
    "prefer",
    "single_machine",
    "bandwidth_sensitive",
    "tflop",
)
"""Fields of a role that the joined job states in another form."""
_AMOUNTS: Final = ("cpus", "memory_gb", "memory_bandwidth")
"""Amounts that all tasks of a job need together, in equal shares."""
_NOT_OF_A_PART: Final = ("max_machines", "balanced")
"""Requirements on all machines of a job, which a part of a job cannot have."""


def checked_roles(value: object, num_tasks: int, dimensions: Collection[str]) -> tuple[tuple[str, int], ...]:
    """Return roles as pairs of name and number of tasks; JobGraphError names what is wrong.

    dimensions: those of the job's collectives; no role may have the name of one.
    """
    roles: list[tuple[str, int]] = []
    for i, one in enumerate(_checks.sequence(cast("Iterable[object]", value), "roles", JobGraphError)):
        pair = _checks.sequence(one, f"roles[{i}]", JobGraphError)
        if len(pair) != 2:
            raise JobGraphError(f"roles[{i}] = {_checks.shown(pair)} is not (name, number of tasks)")
        name = _checks.text(pair[0], f"roles[{i}][0]", JobGraphError)
        if name in dimensions:
            raise JobGraphError(f"roles[{i}] has the name of a dimension, {name!r}")
        size = _checks.integer(pair[1], f"roles[{i}][1]", JobGraphError, low=1, high=MAX_TASKS)
        roles.append((name, size))
    _refuse_repeated([name for name, _ in roles])
    if roles and sum(size for _, size in roles) != num_tasks:
        has = sum(size for _, size in roles)
        raise JobGraphError(f"roles have {has} tasks, the job has {num_tasks}")
    return tuple(roles)


def tasks_of(roles: Sequence[tuple[str, int]]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and the tasks of each role."""
    lasts = accumulate(size for _, size in roles)
    for (name, size), last in zip(roles, lasts, strict=True):
        yield name, tuple(range(last - size, last))


def joined_fields(parts: Sequence[JobGraph], traffic: object) -> dict[str, Any]:
    """Return the fields of a job whose roles are these jobs; see `JobGraph.joined`."""
    if not parts:
        raise JobGraphError("roles is empty: a job has at least one")
    for i, part in enumerate(parts):
        if not part.num_tasks:
            raise JobGraphError(f"roles[{i}] has no tasks: a role has at least one")
    names = _names(parts)
    firsts = list(accumulate((part.num_tasks for part in parts), initial=0))
    if firsts[-1] > MAX_TASKS:
        raise JobGraphError(f"roles have {firsts[-1]} tasks; at most {MAX_TASKS} can be placed")
    between = list(_between(traffic, names, firsts))
    placed = list(zip(parts, firsts, strict=False))
    inside = [one for part, first in placed for one in _collectives(part, first)]
    edges = [(a + first, b + first, weight) for part, first in placed for a, b, weight in part.edges]
    return {
        **_requirements(parts),
        "num_tasks": firsts[-1],
        "edges": (*edges, *((*one.tasks, one.gigabytes) for one in between)),
        "bandwidth_sensitive": any(part.bandwidth_sensitive for part in parts),
        "tflop": _most_tflop(parts),
        "groups": tuple(group for part, first in placed for group in _groups(part, first)),
        "stated_collectives": (*inside, *between),
        "roles": tuple(zip(names, (part.num_tasks for part in parts), strict=True)),
    }


def _names(parts: Sequence[JobGraph]) -> list[str]:
    """Return the name of each role: that of its job, with its index if several jobs have it."""
    times = Counter(part.name for part in parts)
    names = [part.name if times[part.name] == 1 else f"{part.name} {i}" for i, part in enumerate(parts)]
    _refuse_repeated(names)
    return names


def _refuse_repeated(names: Sequence[str]) -> None:
    place: dict[str, int] = {}
    for i, name in enumerate(names):
        if (first := place.setdefault(name, i)) != i:
            raise JobGraphError(f"roles[{i}] has the name of roles[{first}], {name!r}")


# ---- what a role keeps ---------------------------------------------------------------------------------------


def _collectives(part: JobGraph, first: int) -> list[Collective]:
    if not first:
        return list(part.collectives)
    return [replace(one, tasks=tuple([task + first for task in one.tasks])) for one in part.collectives]


def _groups(part: JobGraph, first: int) -> Iterator[Group]:
    """Yield the groups of a role, and a group of all its tasks for each level that they need or prefer."""
    everything = tuple(range(first, first + part.num_tasks))
    for within in (part.within, MACHINE if part.single_machine else None):
        if within:
            yield Group(everything, within)
    if part.prefer:
        yield Group(everything, prefer=part.prefer)
    for group in part.groups:
        yield replace(group, tasks=tuple([task + first for task in group.tasks]))


def _requirements(parts: Sequence[JobGraph]) -> dict[str, Any]:
    """Return the other fields of the joined job; JobGraphError names one in which the roles differ."""
    for name in _NOT_OF_A_PART:
        for i, part in enumerate(parts):
            if getattr(part, name) is not None:
                what = f"roles[{i}].{name} = {getattr(part, name)!r}"
                raise JobGraphError(f"{what}: a role cannot have it; require it of the joined job")
    found = {name: _summed(parts, name) for name in _AMOUNTS}
    found["drives"] = sum(part.drives for part in parts)
    found["processes"] = _processes(parts)
    for name in FIELDS:
        if name not in (*_OF_ITS_TASKS, *_NOT_OF_A_PART, *found):
            found[name] = _equal(parts, name)
    return found


def _equal(parts: Sequence[JobGraph], name: str) -> Any:
    value = getattr(parts[0], name)
    for i, part in enumerate(parts):
        if (other := getattr(part, name)) != value:
            raise JobGraphError(
                f"roles[{i}].{name} = {_checks.shown(other)} differs from roles[0].{name} = {_checks.shown(value)}"
            )
    return value


def _summed(parts: Sequence[JobGraph], name: str) -> float | None:
    """Return the sum of an amount, of which all tasks must need the same."""
    amounts = [getattr(part, name) or 0 for part in parts]
    each = [amount / part.num_tasks for amount, part in zip(amounts, parts, strict=True)]
    for i, share in enumerate(each):
        if not math.isclose(share, each[0]):
            raise JobGraphError(
                f"roles[{i}].{name} is {share:g} for each task, roles[0].{name} is {each[0]:g}: must be equal"
            )
    return sum(amounts) if any(amounts) else None


def _most_tflop(parts: Sequence[JobGraph]) -> float | None:
    """Return the 10¹² operations of the task with the most; None if a role does not state its own."""
    stated = [part.tflop for part in parts if part.tflop is not None]
    return max(stated) if len(stated) == len(parts) else None


def _processes(parts: Sequence[JobGraph]) -> int:
    """Return the number of processes: 1 if each role has one, else the sum; each must drive as many tasks."""
    if all(part.processes == 1 for part in parts):
        return 1
    first = parts[0]
    for i, part in enumerate(parts):
        if part.num_tasks * first.processes != first.num_tasks * part.processes:
            raise JobGraphError(
                f"roles[{i}].processes = {part.processes} for {part.num_tasks} tasks, roles[0].processes = "
                f"{first.processes} for {first.num_tasks}: a process must drive as many tasks in each role"
            )
    return sum(part.processes for part in parts)


# ---- traffic between roles -----------------------------------------------------------------------------------


def _between(traffic: object, names: Sequence[str], firsts: Sequence[int]) -> Iterator[Collective]:
    """Yield what each pair of tasks of two roles sends."""
    if traffic is None:
        return
    _checks.instance(traffic, Mapping, "traffic", JobGraphError)
    known: dict[tuple[int, int], object] = {}
    total = 0
    for pair, stated in cast("Mapping[object, object]", traffic).items():
        what = f"traffic[{_checks.shown(pair)}]"
        low, high = sorted(_role(one, names, what) for one in _pair(pair, what))
        if low == high:
            raise JobGraphError(f"{what} is a role and itself: its traffic belongs to its own job")
        if (low, high) in known:
            raise JobGraphError(f"{what} repeats traffic[{_checks.shown(known[low, high])}]")
        known[low, high] = pair
        gigabytes = _checks.positive(stated, what, JobGraphError, high=MAX_GIGABYTES)
        ends = [range(firsts[role], firsts[role + 1]) for role in (low, high)]
        pairs = len(ends[0]) * len(ends[1])
        if (total := total + pairs) > MAX_PAIRS:
            raise JobGraphError(
                f"{what} makes {total} pairs of tasks of two roles; at most {MAX_PAIRS} are possible"
            )
        dimension = f"{names[low]} to {names[high]}"
        for tasks in product(*ends):
            yield Collective("send", tasks, gigabytes / pairs, dimension)


def _pair(pair: object, what: str) -> tuple[object, ...]:
    ends = _checks.ordered(pair, what, JobGraphError)
    if len(ends) != 2:
        raise JobGraphError(f"{what} is not for a pair of roles")
    return ends


def _role(given: object, names: Sequence[str], what: str) -> int:
    """Return the index of a role that is given by its index or its name."""
    if isinstance(given, str):
        if given not in names:
            raise JobGraphError(f"{what}: {given!r} is no role; the roles are {', '.join(names)}")
        return names.index(given)
    return _checks.integer(given, what, JobGraphError, low=0, high=len(names) - 1)
