"""Tables of a job's ranks: their machines, and the domains that the groups of its dimensions touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from topoplace.binding import Binding
    from topoplace.placement import Placement

_UNNAMED: Final = "all"
"""The dimension of jobs without named dimensions."""
_LONGEST_NAMES: Final = 40
"""Largest number of characters of a list of machines in the table of candidates."""
_MOST_LISTED: Final = 16
"""Largest number of GPUs on several machines that are listed one by one."""


class _Share(NamedTuple):
    """The ranks of one machine and their GPUs, in the order of the ranks."""

    machine: str
    ranks: tuple[int, ...]
    gpus: tuple[int | None, ...]


def is_large(placement: Placement) -> bool:
    """Return True if the placement has too many GPUs to list them, on several machines."""
    return len(placement.gpus) > _MOST_LISTED and len(_machines(placement)) > 1


def in_short(placement: Placement) -> str:
    """Return the number of GPUs and the machines, such as "512 on node[00-63]"."""
    machines = _machines(placement)
    names = folded(machines, placement)
    return (
        f"{len(placement.gpus)} on {names if len(names) <= _LONGEST_NAMES else f'{len(machines)} machines'}"
    )


def folded(machines: Iterable[str], placement: Placement) -> str:
    """Return names of machines of the placement's topology, in its order, as a short list such as "node[00-63]"."""
    from topoplace.discovery.text import host_list

    wanted = set(machines)
    names = [name for name in placement.topology.machine_names if name in wanted]
    try:
        return host_list.folded(names)
    except ValueError:  # a name that no such list can hold
        return ", ".join(names)


def show_machines(placement: Placement) -> None:
    """Print a table of the machines with their ranks; neighbours with equal GPUs share a row."""
    from topoplace.drawing import tables
    from topoplace.topology.device_numbers import runs

    rows = [
        (
            folded((share.machine for share in run), placement),
            len(run[0].ranks),
            runs([rank for share in run for rank in share.ranks]),
            runs([gpu for gpu in run[0].gpus if gpu is not None]) or "-",
        )
        for run in _alike(placement)
    ]
    tables.show(("machines", "ranks on each", "ranks", "GPUs of each, by rank"), rows)


def show_spread(placement: Placement) -> None:
    """Print a table of the number of domains of each level that a group of each parallel dimension touches, if any."""
    from topoplace.drawing import tables

    if placement.job is None or set(placement.job.dimensions) <= {_UNNAMED}:
        return
    levels = ("machine", *(level.name for level in placement.topology.levels))
    rows = [
        (name, _sizes(groups), *(_touched(*placement.spread(name, level)) for level in levels))
        for name, groups in placement.job.dimensions.items()
    ]
    title = "domains that a group of each dimension touches: the most (and the mean, if less)"
    tables.show(("dimension", "groups", *levels), rows, title)


def show_preferred(placement: Placement) -> None:
    """Print, for each level and size, how many of the preferred groups are in one domain."""
    from topoplace.launch.bindings import domains_touched

    groups = () if placement.job is None else placement.job.groups
    alike: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for group in groups:
        if group.prefer is not None:
            alike.setdefault((len(group.tasks), group.prefer), []).append(group.tasks)
    for (size, level), tasks in alike.items():
        together = domains_touched(placement, tasks, level).count(1)
        print(f"preferred: {together} of {len(tasks)} groups of {size} are within a {level}")


def _machines(placement: Placement) -> list[str]:
    """Return the names of the machines, in the order of their first ranks."""
    return list(dict.fromkeys(binding.machine for binding in placement.bindings))


def _shares(bindings: Sequence[Binding]) -> list[_Share]:
    """Return the share of each machine, by its first rank."""
    found: dict[str, list[Binding]] = {}
    for binding in bindings:
        found.setdefault(binding.machine, []).append(binding)
    return [
        _Share(machine, tuple(one.task for one in own), tuple(one.local_gpu for one in own))
        for machine, own in found.items()
    ]


def _alike(placement: Placement) -> Iterator[list[_Share]]:
    """Yield runs of machines, each next to the one before, whose ranks are one block on equal GPUs."""
    place = {name: number for number, name in enumerate(placement.topology.machine_names)}
    run: list[_Share] = []
    for share in _shares(placement.bindings):
        is_next = bool(run) and place[share.machine] == place[run[-1].machine] + 1
        if run and not (is_next and _continues(run[-1], share)):
            yield run
            run = []
        run.append(share)
    if run:
        yield run


def _continues(last: _Share, share: _Share) -> bool:
    """Return True if the ranks of both machines are one block, each with half of it, and their GPUs are equal."""
    ranks = last.ranks + share.ranks
    return last.gpus == share.gpus and all(after == before + 1 for before, after in pairwise(ranks))


def _sizes(groups: Sequence[Sequence[int]]) -> str:
    """Return how many groups there are, and of how many ranks, such as "64 of 8"."""
    sizes = sorted({len(group) for group in groups})
    return f"{len(groups)} of {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else "")


def _touched(most: int, mean: float) -> str:
    return str(most) if mean == most else f"{most} ({mean:.3g})"
