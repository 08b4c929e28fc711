"""Groups of tasks that must be, or should be, together in one domain of a level of the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, cast

from topoplace import _checks
from topoplace.errors import JobGraphError

MACHINE: Final = "machine"
SOCKET: Final = "socket"
_SIZE: Final = re.compile(r"[0-9]{1,9}")
_LAST_TASK: Final = (1 << 31) - 1
INNER_LEVELS: Final = (MACHINE, SOCKET)
"""The levels for groups that every cluster has, besides those of its fabric."""
GPU: Final = "gpu"
"""The level of `spread` for jobs that take parts of GPUs."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks of a job that must be in one domain of a level, or should be.

    Tasks on one machine are in one domain of every level except "socket".

    Raises:
        JobGraphError: Names a wrong field, or says that the group has neither `within` nor `prefer`.
    """

    tasks: tuple[int, ...]
    """The tasks, ascending."""
    within: str | None = None
    """Level at which one domain must have all these tasks: "socket", "machine" or a level of the fabric; None if none
    must.
    """
    prefer: str | None = None
    """Level at which one domain should have all these tasks, if possible; None if none should."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        listed = _checks.sequence(self.tasks, "tasks", JobGraphError)
        tasks = sorted(
            _checks.integer(task, f"tasks[{i}]", JobGraphError, low=0, high=_LAST_TASK)
            for i, task in enumerate(listed)
        )
        if not tasks:
            raise JobGraphError("tasks is empty: a group has at least one")
        for first, second in pairwise(tasks):
            if first == second:
                raise JobGraphError(f"tasks has task {first} twice")
        keep(self, "tasks", tuple(tasks))
        for name in ("within", "prefer"):
            if getattr(self, name) is not None:
                _checks.text(getattr(self, name), name, JobGraphError)
        if self.within is None and self.prefer is None:
            raise JobGraphError("a group needs within or prefer, the level of its domain")


_FIELDS: Final = tuple(field.name for field in fields(Group))


class SizedGroups(NamedTuple):
    """Groups that a short text names, and the level of their domains."""

    sizes: int | tuple[int, ...] | str
    """The size of consecutive groups, a size for each, or the name of a dimension, as for `JobGraph.grouped`."""
    level: str


def sized_groups(text: str) -> SizedGroups:
    """Read groups such as "48@nvlink_domain", "16+16+8@rack" with a size for each, or "tensor@machine".

    Raise JobGraphError for other text.
    """
    what, _, level = (part.strip() for part in text.partition("@"))
    sizes = [size.strip() for size in what.split("+")]
    if not (what and level):
        raise JobGraphError(f"{_checks.shown(text)} is not SIZE@LEVEL, such as 8@machine or 16+16+8@rack")
    if all(_SIZE.fullmatch(size) for size in sizes):
        first, *others = map(int, sizes)
        if 0 in (first, *others):
            raise JobGraphError(f"{_checks.shown(text)} has a group without tasks")
        return SizedGroups((first, *others) if others else first, level)
    if len(sizes) > 1 or not what[0].isalpha():
        raise JobGraphError(
            f"{_checks.shown(text)}: {_checks.shown(what)} is no size, nor sizes such as 16+16+8"
        )
    return SizedGroups(what, level)


def checked_groups(value: object, what: str) -> tuple[Group, ...]:
    """Return groups, given as `Group` objects or as mappings with its fields, sorted and without repetitions.

    Raise JobGraphError for a fault, such as two required groups that overlap and are not nested.
    """
    if value == ():
        return ()
    listed = _checks.sequence(cast("Iterable[object]", value), what, JobGraphError)
    groups = dict.fromkeys(_group(one, f"{what}[{i}]") for i, one in enumerate(listed))
    _refuse_crossing([group for group in groups if group.within is not None])
    return tuple(
        sorted(groups, key=lambda group: (group.tasks[0], -len(group.tasks), group.tasks, _levels(group)))
    )


def blocks(num_tasks: int, sizes: object) -> list[tuple[int, ...]]:
    """Return tasks 0 .. num_tasks - 1 in consecutive blocks; JobGraphError names a wrong size.

    sizes: the size of all blocks (the last may be smaller), or a size for each.
    """
    if isinstance(sizes, Iterable):
        listed = _checks.ordered(sizes, "groups", JobGraphError)
        each = [_size(size, f"groups[{i}]", num_tasks) for i, size in enumerate(listed)]
        if sum(each) != num_tasks:
            raise JobGraphError(
                f"groups = {_checks.shown(listed)} have {sum(each)} tasks, the job has {num_tasks}"
            )
    else:
        size = _size(sizes, "groups", num_tasks)
        each = [min(size, num_tasks - first) for first in range(0, num_tasks, size)]
    return [tuple(range(first, last)) for first, last in pairwise(accumulate(each, initial=0))]


def written(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Return the groups as mappings for JSON, without fields that are None."""
    return [
        {name: value for name in _FIELDS if (value := getattr(group, name)) is not None} for group in groups
    ]


def _levels(group: Group) -> tuple[str, str]:
    return group.within or "", group.prefer or ""


def _size(value: object, what: str, num_tasks: int) -> int:
    return _checks.integer(value, what, JobGraphError, low=1, high=num_tasks)


def _group(given: object, what: str) -> Group:
    if isinstance(given, Group):
        return given
    _checks.instance(given, Mapping, what, JobGraphError)
    stated = dict(cast("Mapping[str, Any]", given))
    if unknown := sorted(set(stated) - set(_FIELDS)):
        raise JobGraphError(f"{what} has the unknown key {unknown[0]!r}")
    if "tasks" not in stated:
        raise JobGraphError(f"{what} has no tasks")
    try:
        return Group(**stated)
    except JobGraphError as error:
        raise JobGraphError(f"{what}: {error}") from None


def _refuse_crossing(groups: Sequence[Group]) -> None:
    """Raise JobGraphError for two groups that have tasks in common although neither is inside the other."""
    around: dict[int, Group] = {}
    for group in sorted(groups, key=lambda one: (-len(one.tasks), one.tasks, _levels(one))):
        outer = dict.fromkeys(around.get(task) for task in group.tasks)
        if len(outer) > 1:
            other = next(one for one in outer if one is not None)
            raise JobGraphError(
                f"groups: {_shown(group)} crosses {_shown(other)}; one must be inside the other, or they are apart"
            )
        around.update(dict.fromkeys(group.tasks, group))


def _shown(group: Group) -> str:
    tasks = group.tasks
    listed = ", ".join(map(str, tasks)) if len(tasks) <= 4 else f"{tasks[0]}, {tasks[1]}, ..., {tasks[-1]}"
    return f"the group of tasks {listed} within {group.within!r}"
