"""Reader of nodes as `kubectl` prints them for people: tables, `describe node`, and lines of labels.

- `kubectl get nodes` with `-L` and labels of cliques, GPUs or levels, or with `--show-labels`. A line of titles, and a
line for each node;
- the table NODE, LABEL, CLIQUE of NVIDIA's documentation;
- `kubectl describe node`: sections Labels, Capacity and Allocatable, for one or several nodes, or some of them for one;
- labels alone: lines of `key=value`, also between the lines `nvidia.com/gpu: 8` of Capacity and Allocatable, as `grep`
leaves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace_hosts.kubernetes.texts import level_labels, node_state
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

TABLE = re.compile(
    rf"^[ \t]*(?:NODE|NAME)[ \t].*(?:\bCLIQUE|\bGPU\.[A-Z]+|\bLABELS|\b{level_labels.TITLE})[ \t]*\r?$",
    re.MULTILINE,
)
"""The line of titles of a table of nodes."""

DESCRIBED = re.compile(r"^([ \t]*)Name:[ \t]+\S+[ \t]*\r?\n(?:\1.*\n){0,4}?\1Labels:", re.MULTILINE)
"""The first lines of a node that `kubectl describe` shows."""
EXCERPT = re.compile(r"^([ \t]*)(?:Capacity|Allocatable):[ \t]*\r?$", re.MULTILINE)
"""The title of a section Capacity or Allocatable."""

_LABEL = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9_./-]*)=(.*)")
_RESOURCE = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9_./-]*):\s+([0-9]\S*)\s*")
_ANY_RESOURCE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_./-]*):\s+(\S.*)")
_CONDITION = re.compile(r"([A-Za-z][\w./-]*)\s+(True|False|Unknown)\b.*")
_TAINT = re.compile(r"[A-Za-z0-9][\w./-]*(?:=[\w.-]*)?:[A-Z][A-Za-z]+")
_CLOSED_STATUS = re.compile(r"\b(NotReady|SchedulingDisabled)\b")
_COUNTED = re.compile(r"nvidia\.com/(?:gpu|mig-\S+):\s+[0-9]+")
_REGEX = re.compile(r"\\[./]|=\[|=\.[*+]|=\(")
_PROMPT = re.compile(r"\s*\S*[$#>]\s+kubectl\b")
_KEYS = {
    f"GPU.{key.upper()}": f"nvidia.com/gpu.{key}"
    for key in ("clique", "count", "memory", "product", "replicas")
}
_KEYS["CLIQUE"] = _KEYS["GPU.CLIQUE"]
_LEVEL = re.compile(level_labels.TITLE)
_REQUESTED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+)[ \t]+([0-9]+)\b.*")
_EMPTY = ("<none>", "null", "-", "")


def nodes(text: str) -> Iterator[NodeRecord] | None:
    """Return the nodes in `text`; None for a text of another kind. Raises TopologyError naming the line."""
    if table := TABLE.search(text):
        return _table(text, text.count("\n", 0, table.start()) + 1)
    if described := DESCRIBED.search(text):
        return _described(text, described[1])
    if excerpt := EXCERPT.search(text):
        return _described(text, excerpt[1], "machine0")
    start = text.lstrip()[:4096].splitlines()
    first = next((line.strip() for line in start if line.strip() and not _PROMPT.match(line)), "")
    grepped = _COUNTED.fullmatch(first) and (start[0].strip() != first or text.count(first) > 1)
    if grepped or ("=" in first and first[0] not in "{[#"):
        return iter([_labelled(text)])
    return None


# ---- tables ----------------------------------------------------------------------------------------------------


def _table(text: str, start: int) -> Iterator[NodeRecord]:
    """Yield the nodes of the table with its titles in line `start`; it ends with the first blank line."""
    titles: list[tuple[str, int]] = []
    for number, line in decode.numbered_lines(text):
        if number == start:
            titles = [(match[0], match.start()) for match in re.finditer(r"\S+", line)]
        elif number > start and not line.strip():
            return
        elif number > start:
            yield _table_node(number, line, titles)


def _table_node(number: int, line: str, titles: Sequence[tuple[str, int]]) -> NodeRecord:
    cells = dict(_cells(number, line, titles))
    where = f"line {number}: node {_checks.shown(next(iter(cells.values())))}: "
    labels = {
        _KEYS.get(title, title.lower()): cell
        for title, cell in cells.items()
        if title in _KEYS or _LEVEL.fullmatch(title)
    }
    for pair in cells.get("LABELS", "").split(","):
        if match := _LABEL.fullmatch(pair):
            labels[match[1]] = match[2]
    closed = _CLOSED_STATUS.search(cells.get("STATUS", ""))
    return NodeRecord(next(iter(cells.values())), where, labels, closed=closed[1] if closed else "")


def _cells(number: int, line: str, titles: Sequence[tuple[str, int]]) -> Iterator[tuple[str, str]]:
    """Yield title and cell: in order if none is missing, else by tabs, or by the column in which a cell begins."""
    words = [(match[0], match.start()) for match in re.finditer(r"\S+", line)]
    if len(words) > len(titles) and titles[-1][0] == "LABELS":  # of `-o wide`, where other cells have blanks
        words, titles = [words[0], words[-1]], [titles[0], titles[-1]]
    if len(words) > len(titles):
        raise TopologyError(
            f"line {number}: {len(words)} cells, and the table has {len(titles)} titles; "
            "use `kubectl get nodes -o json` if cells contain blanks"
        )
    if len(words) == len(titles):
        found = [(title, word) for (title, _), (word, _) in zip(titles, words, strict=True)]
    elif "\t" in line:
        found = [(title, cell.strip()) for (title, _), cell in zip(titles, line.split("\t"), strict=False)]
    else:
        found = [(min(titles, key=lambda title: abs(title[1] - at))[0], word) for word, at in words]
        if len(dict(found)) < len(found):
            raise TopologyError(
                f"line {number}: {len(words)} cells are not below their {len(titles)} titles; give the table as printed"
            )
    yield from ((title, "" if cell in _EMPTY else cell) for title, cell in found)


# ---- descriptions ----------------------------------------------------------------------------------------------


def _described(text: str, indent: str, name: str = "") -> Iterator[NodeRecord]:
    """Yield the nodes that `kubectl describe node` describes, in a text indented by `indent`.

    name: that of a node whose description lacks its first lines.
    """
    where, section = "", ""
    found: dict[str, dict[str, str]] = {}
    for number, line in decode.numbered_lines(text):
        line = line.removeprefix(indent)
        title, colon, rest = line.partition(":")
        if colon and title and not title[0].isspace() and "=" not in title:
            section = title
            if title == "Name":
                if name:
                    yield _node(name, where, found)
                name, where, found = rest.strip(), f"line {number}: node {_checks.shown(rest.strip())}: ", {}
        else:
            rest = line
        for key, value in _state(section, rest.strip()):
            found.setdefault(section, {})[key] = value
        match = (_LABEL if section == "Labels" else _ANY_RESOURCE).fullmatch(rest.strip())
        if match and section in ("Labels", "Capacity", "Allocatable"):
            _put(found.setdefault(section, {}), match[1], match[2].strip(), number)
    if name:
        yield _node(name, where, found)


def _state(section: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of a line of a description that tells the state of a node, not its labels or resources."""
    if section == "Unschedulable":
        yield text.lower(), ""
    elif section == "Taints" and _TAINT.fullmatch(text):
        yield text, ""
    elif section == "Conditions" and (condition := _CONDITION.fullmatch(text)):
        yield condition[1], condition[2]
    elif section == "Allocated resources" and (asked := _REQUESTED.fullmatch(text)):
        yield asked[1], asked[2]


def _node(name: str, where: str, found: Mapping[str, Mapping[str, str]]) -> NodeRecord:
    labels, capacity, allocatable, requested, conditions, taints = (
        found.get(key, {})
        for key in ("Labels", "Capacity", "Allocatable", "Allocated resources", "Conditions", "Taints")
    )
    unschedulable = "true" in found.get("Unschedulable", {})
    closed = node_state.closed(unschedulable=unschedulable, conditions=conditions, taints=taints)
    return NodeRecord(
        name, where, labels, capacity, allocatable, closed, requested, conditions, tuple(taints)
    )


# ---- labels alone ----------------------------------------------------------------------------------------------


def _labelled(text: str) -> NodeRecord:
    """Return the node of lines of labels; lines of resources are its capacity the first time, then what it can give."""
    labels: dict[str, str] = {}
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    for number, line in decode.numbered_lines(text):
        if not line.strip() or _PROMPT.match(line):
            continue
        if _REGEX.search(line):
            raise TopologyError(
                f"line {number}: {_checks.shown(line)} is a pattern that labels are tested against, not a label"
            )
        match, resource = _LABEL.fullmatch(line), _RESOURCE.fullmatch(line)
        if match is not None:
            _put(labels, match[1], match[2].strip(), number)
        elif resource is not None:
            _put(allocatable if resource[1] in capacity else capacity, resource[1], resource[2], number)
        else:
            raise TopologyError(f"line {number}: {_checks.shown(line)} is not a label as key=value")
    return NodeRecord(labels.get("kubernetes.io/hostname") or "machine0", "", labels, capacity, allocatable)


def _put(values: dict[str, str], key: str, value: str, number: int) -> None:
    if key in values:
        raise TopologyError(f"line {number}: label {_checks.shown(key)} appears twice")
    values[key] = value
