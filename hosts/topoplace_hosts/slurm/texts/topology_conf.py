"""Reader of Slurm's `topology.conf` as a Fabric: a tree of switches, blocks, or rings.

A file has lines for one of three kinds. Switches: `SwitchName=… Switches=…` or `SwitchName=… Nodes=…`, or both on one
line. Blocks: `BlockName=… Nodes=…` or `BlockSizes=…`. Rings: `RingName=… Nodes=…`. Names are host lists. The file
contains no speed of any
network: the unit of LinkSpeed is arbitrary.

The output of `scontrol show topology` is read too. There a switch has its Level, and Nodes are all machines below it. A
block has its BlockSize, and an AggregatedBlock is a larger block that Slurm plans with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from topoplace import _checks
from topoplace.discovery.text import decode, host_list
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric, Level
from topoplace_hosts.networks import switch_tree
from topoplace_hosts.slurm.texts import conf_records
from topoplace_hosts.slurm.texts.conf_records import ConfRecord

_NAMES = {"switchname": "SwitchName", "blockname": "BlockName", "ringname": "RingName"}
_KEYS = frozenset({*_NAMES, "nodes", "switches", "linkspeed", "blocksizes"})
_SHOWN_KEYS = frozenset({"level", "blockindex", "blocksize", "aggregatedblock"})
_PROMPT = re.compile(r"^.*\bscontrol\s+show\s+topo\w*.*$", re.MULTILINE)
_RECOGNISED = re.compile(r"^[ \t]*(?:SwitchName|BlockName|RingName)[ \t]*=", re.IGNORECASE | re.MULTILINE)


def recognised(text: str) -> bool:
    """Return True if `text` looks like a `topology.conf`."""
    return _RECOGNISED.search(text) is not None


def parse(data: str | bytes, *, name: str = "slurm", allow_dangling: bool = False) -> Fabric:
    """Read the fabric that `data`, the text of a `topology.conf`, describes.

    Levels of switches are "leaf", "spine", "core" and so on; of rings "ring"; of blocks "block". A larger block size
    that joins 4 neighbouring blocks adds a level "blocks_4". Switches that have the same children count as one.
    allow_dangling: leave out switches in `Switches=` that the file does not describe, with a note, instead of refusing
    them.
    Raises TopologyError naming the line of text that is not a topology.conf, forms no tree, or names a machine twice.
    """
    text = decode.decoded(data, "topology.conf")
    lines = _as_written(list(conf_records.records(_PROMPT.sub("", text), _KEYS | _SHOWN_KEYS)))
    return of_records(lines, name, "topology.conf", allow_dangling=allow_dangling)


def of_records(
    lines: Sequence[ConfRecord], name: str, file: str, notes: Sequence[str] = (), *, allow_dangling: bool
) -> Fabric:
    """Return the fabric that the records in `lines` describe, with further notes; see `parse` for levels and errors.

    file: the file's name in messages.
    """
    kind, named, sizes = _sorted_out(lines)
    switches = _switches(named, kind)
    blocks = [switch.name for switch in switches]
    if empty := [switch.name for switch in switches if _is_empty(switch)]:
        switches = [switch for switch in switches if not _is_empty(switch)]
        notes = (*notes, f"Blocks without nodes, which fill larger blocks: {_checks.some(empty)}.")
    if kind == "switchname":
        tree = switch_tree.from_tree(switches, allow_dangling=allow_dangling)
    else:
        word = kind.removesuffix("name")
        _refuse_switches(named, kind)
        tree = switch_tree.from_tree(switches, word=word, names={0: word})
        tree.notes.clear()  # separate trees are normal for blocks and rings
    if sizes is not None:
        tree.levels += _larger_blocks(sizes, blocks, tree)
    if kind == "ringname":
        tree.notes.append(
            "Machines are in the order of their rings; a level does not state the distance along a ring."
        )
    return switch_tree.fabric(tree, name, [*notes, *_speed_notes(named), f"Slurm's {file} tells no speeds."])


def _as_written(lines: list[ConfRecord]) -> list[ConfRecord]:
    """Return records of `scontrol` output as those of an equal `topology.conf`; records of a file stay the same."""
    written = [record for record in lines if "aggregatedblock" not in record.values]
    sizes = {record.get("blocksize"): record.line for record in lines if "blocksize" in record.values}
    if len(written) < len(lines):
        numbers = sorted((size for size in sizes if size and size.isdecimal()), key=int)
        written.append(ConfRecord(lines[-1].line, {"blocksizes": ",".join(numbers)}))
    return written


def _sorted_out(lines: Sequence[ConfRecord]) -> tuple[str, list[ConfRecord], ConfRecord | None]:
    """Return the key that names the file's entries, such as "switchname", their records, and that of BlockSizes."""
    named: list[ConfRecord] = []
    sizes: ConfRecord | None = None
    kind = ""
    for record in lines:
        keys = [key for key in _NAMES if key in record.values]
        if len(keys) > 1:
            raise TopologyError(f"{record.where}: {_NAMES[keys[0]]} and {_NAMES[keys[1]]} in one line")
        if keys:
            kind = kind or keys[0]
            if keys[0] != kind:
                raise TopologyError(
                    f"{record.where}: {_NAMES[keys[0]]} in a file that has {_NAMES[kind]} in {named[0].where}"
                )
            named.append(record)
        elif set(record.values) != {"blocksizes"}:
            raise TopologyError(
                f"{record.where}: none of {', '.join(_NAMES.values())}, BlockSizes is in this line"
            )
        if "blocksizes" in record.values:
            if sizes is not None:
                raise TopologyError(f"{record.where}: BlockSizes appears twice, first in {sizes.where}")
            sizes = record
    if not named:
        raise TopologyError(f"no line has {', '.join(_NAMES.values())}")
    if sizes is not None and kind != "blockname":
        raise TopologyError(f"{sizes.where}: BlockSizes in a file of {_NAMES[kind]}")
    return kind, named, sizes


def _switches(named: Sequence[ConfRecord], kind: str) -> list[switch_tree.Switch]:
    left = host_list.MAX_HOSTS
    switches: list[switch_tree.Switch] = []
    for record in named:
        found: dict[str, list[str]] = {"nodes": [], "switches": []}
        for key, names in found.items():
            if listed := record.get(key):
                names += host_list.expanded(listed, f"{record.where}: {key}", limit=left)
                left -= len(names)
        is_filler = kind == "blockname" and record.get("nodes") == ""
        if not any(found.values()) and not is_filler:
            raise TopologyError(
                f"{record.where}: {_NAMES[kind]} without Nodes" + " or Switches" * (kind[0] == "s")
            )
        name = _checks.text(record.values[kind], f"{record.where}: {_NAMES[kind]}", TopologyError)
        switches.append(switch_tree.Switch(name, record.where, found["nodes"], found["switches"]))
    if any("level" in record.values for record in named):
        _drop_those_below(named, switches)
    return switches


def _is_empty(switch: switch_tree.Switch) -> bool:
    return not (switch.machines or switch.switches)


def _drop_those_below(named: Sequence[ConfRecord], switches: Sequence[switch_tree.Switch]) -> None:
    """Remove from each switch the machines that a switch of a lower Level has.

    `scontrol` lists for a switch all machines below it, not only those attached to it.
    """
    levels = [_level(record) for record in named]
    below: set[str] = set()
    for level in sorted(set(levels)):
        here = [switch for switch, its in zip(switches, levels, strict=True) if its == level]
        for switch in here:
            switch.machines = [machine for machine in switch.machines if machine not in below]
        below.update(machine for switch in here for machine in switch.machines)


def _level(record: ConfRecord) -> int:
    text = record.get("level") or ""
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise TopologyError(
            f"{record.where}: Level = {_checks.shown(text)} is not a number, but other lines have one"
        )
    return int(text)


def _refuse_switches(named: Sequence[ConfRecord], kind: str) -> None:
    for record in named:
        if "switches" in record.values:
            raise TopologyError(f"{record.where}: Switches in a line of {_NAMES[kind]}")


def _larger_blocks(
    sizes: ConfRecord, blocks: Sequence[str], tree: switch_tree.SwitchTree
) -> tuple[Level, ...]:
    """Return one level for each block size after the first; it joins blocks that are neighbours in the file."""
    numbers = _block_sizes(sizes)
    block_of = tree.levels[0].domains
    members = Counter(block_of)
    if set(members.values()) != {numbers[0]}:
        tree.notes.append(
            f"BlockSizes begins with {numbers[0]}: Slurm plans with so many machines of a block, and the blocks have "
            f"{min(members.values())} to {max(members.values())}."
        )
    place = {block: i for i, block in enumerate(blocks)}
    levels: list[Level] = []
    for size in numbers[1:]:
        ratio = size // numbers[0]
        first = {block: blocks[i // ratio * ratio] for block, i in place.items()}
        domains = tuple(None if block is None else f"{first[block]} and on" for block in block_of)
        levels.append(Level(f"blocks_{ratio}", domains))
    return tuple(levels)


def _block_sizes(sizes: ConfRecord) -> list[int]:
    text = sizes.values["blocksizes"]
    numbers: list[int] = []
    for word in text.split(","):
        if not re.fullmatch(r"[1-9][0-9]{0,6}", word):
            raise TopologyError(
                f"{sizes.where}: BlockSizes: {_checks.shown(word)} is not a number of machines"
            )
        times, rest = divmod(int(word), numbers[0] if numbers else int(word))
        if rest or times & (times - 1) or (numbers and int(word) <= numbers[-1]):
            raise TopologyError(
                f"{sizes.where}: BlockSizes: {word} is not the first size times a larger power of two than those before"
            )
        numbers.append(int(word))
    return numbers


def _speed_notes(named: Sequence[ConfRecord]) -> list[str]:
    speeds = Counter(speed for record in named if (speed := record.get("linkspeed")))
    if not speeds:
        return []
    unused = ", ".join(
        f"{_checks.shown(speed, 20)} ({count} times)" for speed, count in list(speeds.items())[:5]
    )
    return [f"LinkSpeed, whose unit is arbitrary, is not used: {unused}."]
