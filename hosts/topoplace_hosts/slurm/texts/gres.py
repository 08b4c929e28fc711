"""Reader of Slurm's `gres.conf`, the devices of one machine.

A line describes one or several devices: `[NodeName=…] Name=gpu [Type=…] [File=/dev/nvidia[0-3]] [Count=…] [Cores=0-15]
[Links=-1,4,…]`. Links are the NVLinks (or xGMI links) to every device of the machine *in the order of their PCI
addresses*. The device's own place in that order has -1, and need not be the place of its line. Cores are in Slurm's own
numbering, not in that of Linux. With AutoDetect, Slurm queries the driver, and the file need not describe the GPUs.
Lines of shard and mps cut GPUs into shares; a note lists them. A Type such as a100_1g.5gb makes a device a MIG slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from topoplace import _checks
from topoplace.discovery.nvidia.mig import slices_of
from topoplace.discovery.text import decode, host_list
from topoplace.errors import TopologyError
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import (
    NVLINK_MODELS,
    PCIE3_X16_GB_PER_S,
    Link,
    LinkKind,
    LinkSpeed,
    nvlink_of,
    xgmi_of,
)
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm.texts import conf_records
from topoplace_hosts.slurm.texts.conf_records import ConfRecord

MAX_GPUS = 256
"""Limit on the GPUs of one machine; more are refused as a mistake."""

_DEVICE_KEYS = ("name", "type", "file", "multiplefiles", "count", "cores", "cpus", "links", "flags", "ignore")
_KEYS = frozenset({"nodename", "autodetect", *_DEVICE_KEYS})
_RECOGNISED = re.compile(
    r"^[ \t]*(?:NodeName=\S+[ \t]+)?(?:AutoDetect=\S+[ \t]+)?(?:Name=(?:gpu|shard|mps)\b|AutoDetect=)",
    re.IGNORECASE | re.MULTILINE,
)
_SHARES = ("shard", "mps")
_MIG_TYPE = re.compile(
    r"(.*?)[_-]?(?:([1-7])c\.)?([1-7])g\.([0-9]{1,4})gb(?:[+.-][a-z0-9.+]{1,20})?", re.IGNORECASE
)
_COUNT = re.compile(r"([0-9]{1,9})([KkMm]?)")
_CORES = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")


def recognised(text: str) -> bool:
    """Return True if `text` looks like a `gres.conf` with GPUs."""
    return _RECOGNISED.search(text) is not None


def machines(data: str | bytes) -> list[str]:
    """Return the machines that `data` names, in the order of the text; each can be the argument `node` of `parse`."""
    return list(dict.fromkeys(name for line in _lines(data) for name in line.nodes))


def parse(
    data: str | bytes,
    *,
    node: str | None = None,
    gpu_model: str | None = None,
    assume_no_nvlink: bool = False,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "slurm-gres",
) -> Topology:
    """Read the machine that `data`, the text of a `gres.conf`, describes.

    node: the machine to read, if the lines describe different ones.
    gpu_model: such as "V100"; it sets the speed of the links, which otherwise follows from Type.
    assume_no_nvlink: only for a file in which no line has Links. If True, the GPUs have no NVLinks; if False, every
    pair of one socket, or of unknown sockets, has a link of kind `LinkKind.UNKNOWN`.
    pcie_gb_per_s: GB/s assumed of PCIe, for pairs without links; see `link_kinds.path` for those across sockets.
    GPUs with equal Cores share a socket. Raises TopologyError naming the line of malformed text, contradictory links,
    links of unknown speed, and GPUs that only AutoDetect could list.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    if gpu_model is not None:
        _checks.text(gpu_model, "gpu_model", TopologyError)
    machine, lines, notes = _of_node(_lines(data), node)
    devices = list(_devices(lines, machine, notes))
    notes += _shares(lines)
    if not devices:
        raise TopologyError(_why_none(lines, machine))
    names = _names(devices)
    gpus = [
        _gpu(Gpu(i, names[i], gpu_model, machine, socket), device)
        for i, (device, socket) in enumerate(zip(devices, _sockets(devices, notes), strict=True))
    ]
    links = list(_links(devices, gpus, gpu_model is not None))
    if not _checks.flag(assume_no_nvlink, "assume_no_nvlink", TopologyError):
        whole = [gpu.index for gpu in gpus if gpu.fraction == 1.0]
        links += _unknown_links(devices, whole, pcie_gb_per_s, notes)
    notes.append("gres.conf tells no speed of PCIe.")
    return with_host_paths(
        Topology(gpus, tuple(links), default=pcie_gb_per_s, name=name, notes=tuple(dict.fromkeys(notes)))
    )


# ---- lines and nodes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    record: ConfRecord
    nodes: tuple[str, ...]  # the machines it applies to; () for all

    @property
    def is_gpu(self) -> bool:
        return (self.record.get("name") or "").lower() == "gpu"

    @property
    def autodetect(self) -> str:
        """Return the line's AutoDetect method, such as "nvml"; "" if it has none or it is off."""
        found = (self.record.get("autodetect") or "").lower()
        return "" if found == "off" else _checks.shown(found).strip("'")


def _lines(data: str | bytes) -> list[_Line]:
    left = host_list.MAX_HOSTS
    lines: list[_Line] = []
    known: dict[str, tuple[str, ...]] = {}
    for record in conf_records.records(decode.decoded(data, "gres.conf"), _KEYS):
        nodes: tuple[str, ...] = ()
        if (listed := record.get("nodename")) is not None:
            found = known.get(listed) or tuple(
                host_list.expanded(listed, f"{record.where}: NodeName", limit=left)
            )
            nodes = known.setdefault(listed, found)
            left = max(0, left - len(nodes))
        if "name" not in record.values and "autodetect" not in record.values:
            raise TopologyError(f"{record.where}: neither Name nor AutoDetect is in this line")
        lines.append(_Line(record, nodes))
    if not lines:
        raise TopologyError("no line describes a device")
    return lines


def _of_node(lines: Sequence[_Line], node: str | None) -> tuple[str, list[_Line], list[str]]:
    """Return the machine to read, its lines, and notes about the choice."""
    groups = _groups(lines)
    named = [name for members in groups for name in members]
    if node is not None:
        _checks.text(node, "node", TopologyError)
        if named and node not in set(named):
            raise TopologyError(f"node = {_checks.shown(node)} is none of {_listed(groups)}")
        return node, [line for line in lines if not line.nodes or node in line.nodes], []
    if len(groups) > 1:
        raise TopologyError(f"the machines {_listed(groups)} are not alike: choose one with node=")
    chosen = named[0] if named else "machine0"
    notes = (
        [f"This is {chosen}, and {len(named) - 1} more machines are described alike."] if named[1:] else []
    )
    return chosen, [line for line in lines if not line.nodes or chosen in line.nodes], notes


def _groups(lines: Sequence[_Line]) -> list[list[str]]:
    """Return lists of the named machines; machines to which lines with the same content apply are in one list."""
    number: dict[tuple[tuple[str, str], ...], int] = {}
    about: dict[str, list[int]] = {}
    for line in lines:
        content = tuple(
            sorted((key, value) for key, value in line.record.values.items() if key != "nodename")
        )
        for node in line.nodes:
            about.setdefault(node, []).append(number.setdefault(content, len(number)))
    groups: dict[tuple[int, ...], list[str]] = {}
    for node, contents in about.items():
        groups.setdefault(tuple(contents), []).append(node)
    return list(groups.values())


def _listed(groups: Iterable[Sequence[str]]) -> str:
    text = " | ".join(host_list.folded(group) for group in groups)
    return text if len(text) <= 200 else text[:199] + "…"


def _why_none(lines: Sequence[_Line], machine: str) -> str:
    for line in lines:
        if line.autodetect:
            return _uncounted(line, machine)
    return f"no GPU: no line with Name=gpu is about {machine}"


def _uncounted(line: _Line, machine: str) -> str:
    return (
        f"{line.record.where}: AutoDetect={line.autodetect} finds the GPUs of {machine} when Slurm starts, so the file "
        "does not state their number; add Count= or File= to a line with Name=gpu, or read that machine's own tools"
    )


# ---- devices ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _GresDevice:
    line: _Line
    file: str | None


def _devices(lines: Sequence[_Line], machine: str, notes: list[str]) -> Iterator[_GresDevice]:
    others: dict[str, None] = {}
    owner: dict[str, str] = {}
    left = MAX_GPUS
    detected = next((line for line in lines if line.autodetect), None)
    for line in lines:
        if line.autodetect:
            notes.append(
                f"AutoDetect={line.autodetect}: what the driver finds may add to the lines, or differ."
            )
        if line.record.get("name") is None:
            continue
        if not line.is_gpu:
            others[line.record.values["name"]] = None
            continue
        if (line.record.get("ignore") or "").lower() in ("yes", "true", "1"):
            continue
        if not any(map(line.record.get, ("file", "multiplefiles", "count"))):
            notes.append(_default_count(line, detected, machine))
        files = _files(line, left)
        left -= len(files)
        if left < 0:
            raise TopologyError(f"{line.record.where}: more than {MAX_GPUS} GPUs in one machine")
        if len(files) > 1 and "links" in line.record.values:
            raise TopologyError(
                f"{line.record.where}: Links of {len(files)} devices at once; give each its own line"
            )
        _refuse_repeated(files, line.record.where, owner)
        yield from (_GresDevice(line, file) for file in files)
    if others:
        notes.append(f"Not GPUs, and left out: {_checks.shown(', '.join(others))}.")


def _refuse_repeated(files: Iterable[str | None], where: str, owner: dict[str, str]) -> None:
    """Add the device files of the line `where` to `owner`, lines by file; TopologyError for a file that is in it."""
    for file in files:
        if file in owner:
            raise TopologyError(
                f"{where}: File {_checks.shown(file)} is that of {owner[file]} too; each GPU has its own file"
            )
        if file is not None:
            owner[file] = where


def _default_count(line: _Line, detected: _Line | None, machine: str) -> str:
    """Return a note on a line without File and Count; TopologyError if AutoDetect, in line `detected`, decides."""
    if detected is not None:
        raise TopologyError(_uncounted(detected, machine))
    return f"Line {line.record.line} has neither File nor Count: one GPU, as in Slurm."


def _shares(lines: Iterable[_Line]) -> Iterator[str]:
    """Yield one note that lists the shares of GPUs in `lines`, if any; a topology cannot represent shares."""
    shares = [
        f"{name} {line.record.get('count') or 1} of {line.record.get('file') or 'all GPUs'}"
        for line in lines
        if (name := (line.record.get("name") or "").lower()) in _SHARES
    ]
    if shares:
        yield f"Shares that jobs can get of GPUs, left out: {_checks.shown(', '.join(shares), 1000)}."


def _files(line: _Line, left: int) -> Sequence[str | None]:
    """Return the device file of each GPU of a line, or None for each GPU without a file.

    left: how many GPUs the machine may still have; TopologyError if the line has more.
    """
    record = line.record
    files: Sequence[str | None] = ()
    if record.get("multiplefiles"):
        files = (record.values["multiplefiles"],)
    elif listed := record.get("file"):
        files = host_list.expanded(listed, f"{record.where}: File", limit=left)
    if (text := record.get("count")) is None:
        return files or (None,)
    match = _COUNT.fullmatch(text)
    if match is None:
        raise TopologyError(f"{record.where}: Count = {_checks.shown(text)} is not a number")
    count = int(match[1]) * {"": 1, "k": 1024, "m": 1 << 20}[match[2].lower()]
    if files and count != len(files):
        raise TopologyError(f"{record.where}: Count is {count}, but there are {len(files)} files")
    if count > left:
        raise TopologyError(f"{record.where}: more than {MAX_GPUS} GPUs in one machine")
    return files or [None] * count


def _gpu(gpu: Gpu, device: _GresDevice) -> Gpu:
    """Return `gpu` with what Type tells; a MIG slice is part of the first of its files."""
    found = of_type(gpu, device.line.record.get("type"), f"{device.line.record.where}: ")
    parent = (device.file or "").split(",")[0].rpartition("/")[2] or None
    return replace(found, parent=parent) if found.fraction < 1 else found


def of_type(gpu: Gpu, named: str | None, where: str) -> Gpu:
    """Return `gpu` with the data of its type: its model, and for a MIG slice its share of a GPU.

    where: the start of messages. TopologyError for a slice larger than a GPU of its model.
    """
    found = _MIG_TYPE.fullmatch(named or "")
    if found is None:
        return replace(gpu, model=gpu.model or named)
    model = gpu.model or found[1] or None
    whole = slices_of(model or "") or 7
    compute = int(found[2] or found[3])
    if compute > whole:
        raise TopologyError(f"{where}Type = {_checks.shown(named)} is {compute} slices of {whole}")
    return replace(gpu, model=model, memory_gb=float(found[4]) or None, fraction=compute / whole)


def _names(devices: Sequence[_GresDevice]) -> list[str]:
    """Return the last part of each device file if these are distinct, else GPU0, GPU1 and so on."""
    names = [(device.file or "").rpartition("/")[2] for device in devices]
    return names if all(names) and len(set(names)) == len(names) else [f"GPU{i}" for i in range(len(devices))]


def _sockets(devices: Sequence[_GresDevice], notes: list[str]) -> list[int | None]:
    """Return the socket of each device: one number, from 0, for each distinct set of Cores.

    All are None if a device has no Cores or different sets overlap.
    """
    cells = [_cores(device.line.record) for device in devices]
    for device, cell in zip(devices, cells, strict=True):
        if cell is not None and not _CORES.fullmatch(cell):
            raise TopologyError(
                f"{device.line.record.where}: Cores = {_checks.shown(cell)} is not a list like 0-3,8-11"
            )
    number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    if None in number:
        return [None] * len(devices)
    if _overlap([cell for cell in number if cell]):
        notes.append("The Cores of different GPUs overlap: sockets are not known.")
        return [None] * len(devices)
    return [number[cell] for cell in cells]


def _cores(record: ConfRecord) -> str | None:
    """Return the text of Cores in `record`, such as "0-3,8", without surrounding brackets; None if there is none."""
    cell = record.get("cores") or record.get("cpus")
    return cell[1:-1] if cell and cell[0] + cell[-1] == "[]" else cell


def _overlap(cells: Iterable[str]) -> bool:
    spans = sorted(span for cell in cells for span in _spans(cell))
    return any(span[0] <= before[1] for before, span in pairwise(spans))


def _spans(cores: str) -> Iterator[tuple[int, int]]:
    for part in cores.split(","):
        low, _, high = part.partition("-")
        yield int(low), int(high or low)


# ---- links -----------------------------------------------------------------------------------------------------


def _unknown_links(
    devices: Sequence[_GresDevice], whole: Sequence[int], pcie_gb_per_s: float, notes: list[str]
) -> list[tuple[int, int, Link]]:
    """Return a link of kind UNKNOWN for every pair of the `whole` GPUs if no line has Links, else []."""
    if len(whole) < 2 or any("links" in device.line.record.values for device in devices):
        return []
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    notes.append(
        "The file has no Links: whether GPUs are joined by NVLink is not given; Cores alone tell what is near."
    )
    return [(u, v, unknown) for v in whole for u in whole if u < v]


def _links(
    devices: Sequence[_GresDevice], gpus: Sequence[Gpu], model_given: bool
) -> Iterator[tuple[int, int, Link]]:
    rows = _link_rows(devices)
    place = _places(rows)
    total = [sum(row) + 1 for _, row in rows]  # the -1 is not a link
    speeds = [
        _speed(gpu.model, where, model_given) if count else None
        for gpu, (where, _), count in zip(gpus, rows, total, strict=False)
    ]
    for v, (where_v, row_v) in enumerate(rows):
        for u, (where_u, row_u) in enumerate(rows[:v]):
            width, back = row_u[place[v]], row_v[place[u]]
            if width != back:
                raise TopologyError(
                    f"{where_v}: {back} links to {gpus[u].name}, but {where_u}: {width} links to {gpus[v].name}"
                )
            near, far = speeds[u], speeds[v]
            if width and near is not None and far is not None:
                switched = total[u] > near.most_links or total[v] > far.most_links
                yield u, v, _link(width, min(near, far, key=lambda speed: speed.gb_per_s), switched, where_v)


def _link(width: int, speed: LinkSpeed, switched: bool, where: str) -> Link:
    """Return a link of `width` lanes at `speed` each.

    switched: True if one of the two GPUs lists more links in total than its model has, so they lead to a switch.
    """
    if width > speed.most_links:
        raise TopologyError(f"{where}: {width} links, more than the {speed.most_links} of such a GPU")
    kind = LinkKind.NVSWITCH if switched and speed.kind is not LinkKind.XGMI else speed.kind
    return Link(kind, width, width * speed.gb_per_s)


def _link_rows(devices: Sequence[_GresDevice]) -> list[tuple[str, list[int]]]:
    """Return for each device the line of its Links, for messages, and their numbers; [] if no line has Links."""
    linked = [device for device in devices if "links" in device.line.record.values]
    if not linked:
        return []
    if len(linked) < len(devices):
        missing = next(device for device in devices if "links" not in device.line.record.values)
        raise TopologyError(f"{missing.line.record.where}: no Links, which {linked[0].line.record.where} has")
    return [_link_row(device.line.record, len(devices)) for device in devices]


def _link_row(record: ConfRecord, count: int) -> tuple[str, list[int]]:
    words = record.values["links"].split(",")
    where = f"{record.where}: Links"
    if len(words) != count:
        raise TopologyError(f"{where} has {len(words)} numbers for {count} GPUs")
    for word in words:
        if not re.fullmatch(r"-1|[0-9]{1,3}", word):
            raise TopologyError(f"{where}: {_checks.shown(word)} is not a number of links")
    return where, [int(word) for word in words]


def _places(rows: Sequence[tuple[str, list[int]]]) -> list[int]:
    """Return each device's place in the order of PCI addresses: the index of -1 in the device's row of Links."""
    first: dict[int, str] = {}
    places: list[int] = []
    for where, row in rows:
        if row.count(-1) != 1:
            raise TopologyError(f"{where} has -1, which stands for the device itself, {row.count(-1)} times")
        place = row.index(-1)
        if place in first:
            raise TopologyError(f"{where} has -1 at place {place}, as has {first[place]}")
        first[place] = where
        places.append(place)
    return places


def _speed(model: str | None, where: str, model_given: bool) -> LinkSpeed:
    speed = (nvlink_of(model) or xgmi_of(model)) if model else None
    if speed is None:
        given = f"gpu_model = {_checks.shown(model)}" if model_given else f"Type = {_checks.shown(model)}"
        raise TopologyError(
            f"{where}: {given} has no known link speed; give gpu_model=, such as {', '.join(NVLINK_MODELS)}"
        )
    return speed
