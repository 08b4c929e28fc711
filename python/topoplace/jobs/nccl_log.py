"""Reader of the rings, trees and operations that NCCL prints with NCCL_DEBUG=INFO (MAPA, section 3.1, fig. 9).

NCCL_DEBUG_SUBSYS=INIT,GRAPH adds each rank's neighbours, without which rings of more than 20 ranks are not complete;
COLL adds each operation.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.collectives import Collective
from topoplace.jobs.requirements import MAX_TASKS

PATTERNS: Final = ("ring", "tree")
_RANKS: Final = re.compile(r"\bnranks (\d{1,9})\b", re.IGNORECASE)
_WHOLE_RING: Final = re.compile(r"NCCL INFO (?:Channel|Ring) (\d{1,9})(?:/\d+)? :((?:\s+\d{1,9}){2,})\s*$")
_RING: Final = re.compile(r"NCCL INFO Ring (\d{1,9}) : (\d{1,9}) -> (\d{1,9}) -> (\d{1,9})\s*$")
_TREES: Final = re.compile(r"NCCL INFO Trees( \[\d{1,9}\] [-\d/>|\[\] ]+)$")
_TREE: Final = re.compile(
    r"\[(\d{1,9})\] (-?\d{1,9}(?:/-?\d{1,9}){0,7})->(-?\d{1,9})->(-?\d{1,9}(?:/-?\d{1,9}){0,7})"
)
_OPERATION: Final = re.compile(r"^(.{0,1000}?)NCCL INFO (\w{1,40}): opCount ")
_DETAILS: Final = re.compile(
    r" count (\d{1,18}) datatype (\d{1,3}) op \d{1,3} root (\d{1,9}) comm (\S{1,40}) \[nranks=(\d{1,9})\]"
)
_OPERATIONS: Final = {
    "allreduce": ("all_reduce", False),
    "allgather": ("all_gather", True),
    "reducescatter": ("reduce_scatter", True),
    "alltoall": ("all_to_all", True),
    "broadcast": ("broadcast", False),
}
"""The kind of collective of each operation, and True if the logged count is that of one rank's part."""
_DATATYPE_BYTES: Final = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""The size of each ncclDataType_t: of integers with 8 to 64 bits, half, float, double, bfloat16, and two of 8 bits."""
_LONGEST_TREES: Final = 1000
"""NCCL cuts the list of a rank's trees a little above this number of characters."""
_MOST_CHANNELS: Final = 1 << 30
_MOST_PRINTED: Final = 20
_MAX_TEXT: Final = 1 << 28

Pair = tuple[int, int]


def edges_of(text: str | bytes, pattern: str) -> tuple[int, Mapping[Pair, int]]:
    """Return the number of ranks and, for each pair of ranks, the number of channels whose rings or trees join the
    pair.

    text: the log of one communicator, of one rank or of all of them. pattern: "ring" or "tree". NCCL prints whole rings
    in the log of rank 0, cut off after 20 ranks, and each rank's neighbours in that rank's log. Raise JobGraphError for
    a line that contradicts an earlier one, such as one of another communicator, or for an incomplete log.
    """
    _checks.one_of(pattern, "pattern", PATTERNS, JobGraphError)
    lines = _lines(text)
    stated = _stated(lines)
    found = _rings(lines, stated) if pattern == "ring" else _trees(lines)
    ranks = _number_of_ranks(stated, found)
    for channel, joined in found.items():
        _check_complete(channel, joined, ranks, pattern)
    counts: Counter[Pair] = Counter()
    for joined in found.values():
        counts.update({(min(a, b), max(a, b)) for a, b in joined})
    return ranks, counts


def collectives_of(text: str | bytes, ranks: int) -> tuple[Collective, ...]:
    """Return the collectives of all ranks with the GB of all operations that the log shows; () if it shows none.

    text: as for `edges_of`. ranks: the number of ranks. If the logs of ranks differ, such as when some end earlier, the
    one with the most bytes counts. A warning names operations that no collective describes, such as a send from one
    rank to another. Raise JobGraphError for a line that cannot be read, or is of another communicator.
    """
    totals: dict[tuple[str, int], Counter[tuple[str, str]]] = {}
    unread: Counter[str] = Counter()
    for number, line in enumerate(_lines(text), 1):
        if not (match := _OPERATION.match(line)):
            continue
        process, operation = match[1].split(" ")[0].rpartition(":")[0], match[2]
        details = _DETAILS.search(line)
        if operation.lower() not in _OPERATIONS or not details:
            unread[operation] += 1
            continue
        count, datatype, root, size = (int(details[group]) for group in (1, 2, 3, 5))
        _check_operation(number, datatype, root, size, ranks)
        kind, is_part = _OPERATIONS[operation.lower()]
        key = kind, root if kind == "broadcast" else 0
        size_bytes = count * _DATATYPE_BYTES[datatype] * (ranks if is_part else 1)
        totals.setdefault(key, Counter())[process, details[4]] += size_bytes
    if unread:
        listed = ", ".join(f"{times} {operation}" for operation, times in sorted(unread.items()))
        warnings.warn(f"operations of the log that are not read: {listed}", stacklevel=3)
    return tuple(_collectives(totals, ranks))


def _check_operation(number: int, datatype: int, root: int, size: int, ranks: int) -> None:
    if size != ranks:
        raise JobGraphError(f"line {number}: a communicator of {size} ranks, not {ranks}; {_ONE_LOG}")
    if datatype >= len(_DATATYPE_BYTES):
        raise JobGraphError(
            f"line {number}: datatype {datatype} is none of NCCL's 0..{len(_DATATYPE_BYTES) - 1}"
        )
    if root >= ranks:
        raise JobGraphError(f"line {number}: root {root} is not in 0..{ranks - 1}")


def _collectives(
    totals: Mapping[tuple[str, int], Mapping[tuple[str, str], int]], ranks: int
) -> Iterator[Collective]:
    for (kind, root), by_rank in sorted(totals.items()):
        if ranks > 1 and (most := max(by_rank.values())):
            tasks = (*range(root, ranks), *range(root))
            yield Collective(kind, tasks, most / 1e9)


def _lines(text: str | bytes) -> list[str]:
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    _checks.text(text, "text", JobGraphError)
    if len(text) > _MAX_TEXT:
        raise JobGraphError(f"text has more than {_MAX_TEXT} characters")
    return text.splitlines()


def _stated(lines: list[str]) -> int | None:
    stated = {int(match[1]) for line in lines if (match := _RANKS.search(line))}
    if len(stated) > 1:
        raise JobGraphError(
            f"text has communicators of {', '.join(map(str, sorted(stated)))} ranks; {_ONE_LOG}"
        )
    if stated and max(stated) > MAX_TASKS:
        raise JobGraphError(
            f"text has a communicator of {max(stated)} ranks; at most {MAX_TASKS} can be placed"
        )
    return stated.pop() if stated else None


def _rings(lines: list[str], ranks: int | None) -> dict[int, set[Pair]]:
    """Return the pairs of neighbours in each channel's ring: from whole rings if all are complete, else rank by rank.

    ranks: the number of ranks, if the log states it.
    """
    by_rank: dict[int, dict[int, int]] = {}
    whole: dict[int, tuple[int, ...]] = {}
    for number, line in enumerate(lines, 1):
        if match := _RING.search(line):
            channel, before, rank, after = map(int, match.groups())
            _once(by_rank.setdefault(channel, {}), before, rank, number)
            _once(by_rank[channel], rank, after, number)
        elif match := _WHOLE_RING.search(line):
            ring = tuple(map(int, match[2].split()))
            if whole.setdefault(int(match[1]), ring) != ring:
                raise JobGraphError(
                    f"line {number}: channel {int(match[1])} has another ring than before; {_ONE_LOG}"
                )
    if whole and all(_is_complete(ring, ranks) for ring in whole.values()):
        return {channel: set(zip(ring, (*ring[1:], ring[0]), strict=True)) for channel, ring in whole.items()}
    if not by_rank:
        raise JobGraphError(_why_no_ring(whole, ranks))
    return {channel: set(after.items()) for channel, after in by_rank.items()}


def _why_no_ring(whole: Mapping[int, tuple[int, ...]], ranks: int | None) -> str:
    """Return why no ring can be read; `whole` has the rings of rank 0 by channel, which are not all complete."""
    cut = next(((channel, ring) for channel, ring in whole.items() if not _is_complete(ring, ranks)), None)
    if cut is None:
        return "text has no rings of NCCL: NCCL_DEBUG=INFO prints them when a communicator is made"
    channel, ring = cut
    of = f" of {ranks}" if ranks else ""
    at = (
        f"NCCL cuts it off after {_MOST_PRINTED} ranks"
        if len(ring) == _MOST_PRINTED
        else "it is cut off or damaged"
    )
    return (
        f"text has no rings of NCCL that are complete: channel {channel} shows {len(ring)} ranks{of} and ends at rank "
        f"{ring[-1]}: {at}; NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH prints each rank's neighbours"
    )


def _is_complete(ring: tuple[int, ...], ranks: int | None) -> bool:
    if ranks is None and len(ring) == _MOST_PRINTED:
        return False  # perhaps the ring goes on
    return len(ring) == (ranks or len(ring)) and sorted(ring) == list(range(len(ring)))


def _trees(lines: list[str]) -> dict[int, set[Pair]]:
    """Return the pairs of parent and child in each channel's tree."""
    parents: dict[int, dict[int, int]] = {}
    pairs: dict[int, set[Pair]] = {}
    known = _MOST_CHANNELS  # channels below this one are in every rank's list
    for number, line in enumerate(lines, 1):
        listed = _TREES.search(line)
        matches = list(_TREE.finditer(listed[1])) if listed else []
        if listed and matches and len(listed[1]) >= _LONGEST_TREES:
            known = min(known, int(matches[-1][1]))
        for match in matches:
            for parent, child in _parents_in(match):
                _once(parents.setdefault(int(match[1]), {}), child, parent, number)
                pairs.setdefault(int(match[1]), set()).add((parent, child))
    pairs = {channel: joined for channel, joined in pairs.items() if channel < known}
    if not pairs:
        raise JobGraphError(
            "text has no trees of NCCL: NCCL_DEBUG=INFO prints them when a communicator is made"
        )
    return pairs


def _parents_in(match: re.Match[str]) -> Iterator[Pair]:
    """Yield the pairs (parent, child) of one rank in one tree."""
    rank = int(match[3])
    left, right = ([int(part) for part in match[side].split("/")] for side in (2, 4))
    down, up = (left, right) if len(left) > 1 else (right, left)  # before NCCL 2.5, the parent stood first
    yield from ((rank, child) for child in down if child >= 0)
    yield from ((parent, rank) for parent in up if parent >= 0)


_ONE_LOG: Final = "the text must be the log of one communicator"


def _once(known: dict[int, int], key: int, value: int, number: int) -> None:
    if known.setdefault(key, value) != value:
        raise JobGraphError(f"line {number}: rank {key} has other neighbours than before; {_ONE_LOG}")


def _number_of_ranks(stated: int | None, found: Mapping[int, set[Pair]]) -> int:
    seen = set(_ranks(found))
    count = max(seen) + 1 if stated is None else stated
    if count > MAX_TASKS or max(seen) >= count:
        raise JobGraphError(
            f"rank {max(seen)} is not below the number of ranks, {count}, which is at most {MAX_TASKS}"
        )
    if missing := sorted(set(range(count)) - seen):
        raise JobGraphError(f"text lacks rank {missing[0]} of {count}: the logs of all ranks are needed")
    return count


def _check_complete(channel: int, joined: set[Pair], ranks: int, pattern: str) -> None:
    """Raise JobGraphError unless the pairs (a, b) make one ring, or one tree, of all ranks."""
    if pattern == "ring":
        after, rank, steps = dict(joined), 0, 0
        while rank in after:
            rank, steps = after.pop(rank), steps + 1
        is_complete = rank == 0 and steps == ranks == len(joined)
    else:
        parent = {child: above for above, child in joined}
        is_complete = len(joined) == ranks - 1 and len({_root(rank, parent) for rank in range(ranks)}) == 1
    if not is_complete:
        raise JobGraphError(
            f"channel {channel} is not one {pattern} of {ranks} ranks: "
            "the lines of all ranks of one communicator are needed"
        )


def _root(rank: int, parent: Mapping[int, int]) -> int:
    """Return the topmost ancestor of a rank; -1 if its ancestors make a circle."""
    for _ in range(len(parent) + 1):
        if rank not in parent:
            return rank
        rank = parent[rank]
    return -1


def _ranks(found: Mapping[int, set[Pair]]) -> Iterator[int]:
    for pairs in found.values():
        for pair in pairs:
            yield from pair
