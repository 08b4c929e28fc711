"""Reader of the matrix that `nvidia-smi topo -m` prints.

The text has a header of device names and affinity titles, one row per device with a label per column, and a legend; see
`matrix_rows`.

Labels are X for the device itself and NV# for # parallel NVLinks. The others are paths: PIX and PXB (PCIe switches
only), PHB and NODE (through a host bridge), SYS (across sockets, SOC in old drivers). The text contains no speeds,
neither of NVLinks nor of PCIe; `nvidia-smi topo -mp` omits NVLinks altogether.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from topoplace import _checks
from topoplace.discovery.nvidia import (
    gpu_line,
    listed_gpus,
    markdown_table,
    matrix_rows,
    nvlink_guess,
    wrapped_lines,
)
from topoplace.discovery.nvidia.listed_gpus import Listed
from topoplace.discovery.nvidia.matrix_rows import (
    CPUS,
    GPU_NUMA,
    LEGEND,
    NUMA,
    NVLINKS,
    Header,
    Matrix,
    MatrixRow,
)
from topoplace.discovery.nvidia.nvlink_guess import Guess
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu, Nic
from topoplace.topology.links.link_kinds import (
    NVLINK_MODELS,
    PATHS,
    PCIE3_X16_GB_PER_S,
    SPEEDS,
    Link,
    LinkKind,
    LinkSpeed,
    assumed_paths,
    model_known,
    nvlink_of,
    path,
    pcie_of,
)
from topoplace.topology.topology import Topology

# Without a model: the largest number of lanes of any GPU; their speed is guessed.
_ANY_PORT = LinkSpeed(LinkKind.NVLINK, 25.0, None, "direct", 18)


_NVLINK_KINDS = {LinkKind.NVLINK, LinkKind.NVSWITCH}
_NVLINK_IN_LEGEND = re.compile(r"\s*NV[0-9#]+\s*=")
_LEGEND_BEFORE_NVLINK = re.compile(r"\s*[A-Z]{3}\s*=\s*Path traverses\b")
_LOST_UNDERLINE = re.compile(
    r"^\[4m|\[0m$", re.MULTILINE
)  # the header's underline without its escape characters
_COMMAND_AND_HEADER = re.compile(
    r"^[^\n]{0,200}?\bnvidia-smi[ \t]+topo[ \t]+-{1,2}\w+[ \t]*(?=GPU0)", re.MULTILINE
)
_NIC_NAME = re.compile(r"\s*(NIC[0-9]+):\s*(\S+)\s*")
_COMMAND = re.compile(r"\bnvidia-smi\s+(?:topo|-L)[\w\s-]*[`:]*\s*$")
_HIDES_NVLINKS = re.compile(r"\bnvidia-smi[ \t]+topo[ \t]+-{1,2}mp\b")
_LEGEND_LINE = re.compile(r"\s*(?:[A-Z]{1,4}|NV[0-9#x]+)\s*=\s")
_BREAKABLE = 60  # no line of the legend is broken by a terminal but those of more characters
_NODES = re.compile(r"([0-9]{1,4})(,[0-9]{1,4}-[0-9]{1,4})*")


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi topo -m`: it has a GPU's row with a path label."""
    return matrix_rows.recognised(_clean_lines(text[:65536]))


def parse(
    text: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float | None = None,
    assume_no_nvlink: bool = False,
    name: str = "nvidia-smi",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from the output of `nvidia-smi topo -m`.

    Sockets follow the NUMA affinity, or the CPU affinity if the NUMA affinity is unknown. Of several NUMA nodes near a
    GPU, the first counts if the others are memory of GPUs; otherwise, none does. NVLinks are assumed to lead to a
    switch if a GPU's row has more NVLinks in total than the GPU's model has. `notes` lists all assumptions.

    gpu_model: model, such as "V100" or "NVIDIA A100-SXM4-40GB", for the speed of an NVLink. None means the model in
        lines next to the matrix, such as those of `nvidia-smi -L`. Without such lines the speed is guessed (see
    `nvlink_guess`), and `assumed` has the kind of these links.
    pcie_gb_per_s: GB/s assumed for PCIe on a path PIX; see `link_kinds.path` for slower paths. None means that of
        the PCIe generation of the GPUs' models, or of PCIe 3 if these are unknown.
    assume_no_nvlink: if True, read the text of `topo -mp` as that of a machine without NVLinks. If False, such a text
    (its legend has no NV#) is refused, because it omits NVLinks.
    Raise TopologyError naming the line and the cell.
    """
    if pcie_gb_per_s is not None:
        pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    assume_no_nvlink = _checks.flag(assume_no_nvlink, "assume_no_nvlink", TopologyError)
    if gpu_model is not None:
        gpu_model = _checks.text(gpu_model, "gpu_model", TopologyError)
    lines = _clean_lines(text)
    matrix = matrix_rows.read(lines)
    header, rows = matrix.header, matrix.rows
    _check_symmetry(header, rows)
    has_nvlink = any(label.startswith("NV") for gpu in header.gpus for label in rows[gpu].labels)
    listed = listed_gpus.read(lines)
    models, ports, guess = _ports(lines, matrix, listed.models(), gpu_model, has_nvlink=has_nvlink)
    pcie = _Pcie.of(models) if pcie_gb_per_s is None else _Pcie(pcie_gb_per_s, "")
    links = tuple(_links(header, rows, ports, pcie.gb_per_s))
    notes = [*_guess_notes(guess, models), *_notes(header, rows, pcie)]
    if not has_nvlink and not assume_no_nvlink:
        notes += _hidden(lines, header)
    gpus, repeated = gpu_line.with_distinct_uuids(_gpus(header, rows, models, machine, listed.uuids()))
    cut = listed.cut
    gpus = tuple(replace(gpu, healthy=gpu.healthy and gpu.name not in cut) for gpu in gpus)
    notes += [*filter(None, map(gpu_line.lost_gpu, lines)), *gpu_line.missing_gpus(header.gpus)]
    notes += [*_unread(lines, matrix, listed), *matrix.notes, *_affinity_notes(header, rows)]
    return Topology(
        gpus,
        links,
        default=pcie.gb_per_s,
        name=name,
        nics=tuple(_nics(lines, header, rows)),
        notes=(*notes, *listed.notes(header.gpus), *repeated),
        assumed=tuple({link.kind for _, _, link in links} & _NVLINK_KINDS if guess else ()),
    )


def _clean_lines(text: object) -> list[str]:
    _checks.refuse_path(text, "text", TopologyError)
    if not isinstance(text, str | bytes):
        raise TopologyError(f"text = {_checks.shown(text)} is not a string")
    clean = _COMMAND_AND_HEADER.sub("\t", _LOST_UNDERLINE.sub("", decode.decoded(text)))
    lines = markdown_table.as_printed(line for _, line in decode.numbered_lines(clean))
    return wrapped_lines.joined(list(lines))


def _unread(lines: Sequence[str], matrix: Matrix, listed: Listed) -> Iterator[str]:
    """Yield a note on the lines that are not of the matrix, its legends and the list of GPUs."""
    own = {matrix.header.index + 1, *(row.line for row in matrix.rows.values()), *listed.lines}
    wrapped = False
    for number, line in enumerate(lines[: matrix.end], 1):
        if not line:
            wrapped = False
            continue
        wrapped = wrapped or _LEGEND_LINE.match(line) is not None
        if wrapped or LEGEND.match(line) or _NIC_NAME.match(line):
            own.add(number)
        wrapped = wrapped and len(line) >= _BREAKABLE
        if gpu_line.lost_gpu(line):
            own.add(number)
    yield from unread.note(enumerate(lines[: matrix.end], 1), lambda number, _: number in own, _COMMAND)


# ---- meaning ---------------------------------------------------------------------------------------------------


def _check_symmetry(header: Header, rows: Mapping[str, MatrixRow]) -> None:
    there_are = [(i, device, rows[device]) for i, device in enumerate(header.devices) if device in rows]
    for count, (i, u, row) in enumerate(there_are, 1):
        for j, v, other in there_are[:count]:
            there, back = row.labels[j], other.labels[i]
            if (there == matrix_rows.SELF) != (i == j):
                raise TopologyError(
                    f"line {row.line}: {u} to {v} is {there}; a device has X in its own column, and only there"
                )
            if there != back:
                raise TopologyError(
                    f"line {other.line}: {v} to {u} is {back}, but line {row.line}: {u} to {v} is {there}; "
                    "give the text as printed"
                )


def _model_named_near(lines: Sequence[str], rows: Mapping[str, MatrixRow], has_nvlink: bool) -> str | None:
    """Return the GPU model that lines around the matrix name; None if that is no help."""
    named = nvlink_guess.named_model(nvlink_guess.surrounding(lines, rows))
    return named if named and (nvlink_of(named) or not has_nvlink) else None


def _known_model(gpu_model: str | None, has_nvlink: bool) -> tuple[str | None, LinkSpeed]:
    """Return the GPU model's short name, and speed and number of its NVLinks.

    Raise TopologyError if the model's NVLinks are unknown and the text has NVLinks.
    """
    if gpu_model is None:
        return None, _ANY_PORT
    speed = nvlink_of(gpu_model)
    if speed is not None:
        return model_known(gpu_model), speed
    if has_nvlink:
        known = ", ".join(NVLINK_MODELS)
        raise TopologyError(f"gpu_model = {_checks.shown(gpu_model)} is not known; known: {known}")
    return gpu_model, _ANY_PORT


def _ports(
    lines: Sequence[str],
    matrix: Matrix,
    listed: Mapping[str, str],
    gpu_model: str | None,
    *,
    has_nvlink: bool,
) -> tuple[list[str | None], list[LinkSpeed], Guess | None]:
    """Return the model and the NVLinks of each GPU, and the guess if the text has NVLinks of unknown speed.

    listed: the models that the text lists, by GPU. gpu_model: that of every GPU, if given.
    """
    header, rows = matrix.header, matrix.rows
    if gpu_model is None and len(set(listed.values())) < 2:
        gpu_model = _model_named_near(lines, rows, has_nvlink)
    model, port = _known_model(gpu_model, has_nvlink)
    models = [model or listed.get(gpu) for gpu in header.gpus]
    speeds = [port if model else nvlink_of(one or "") for one in models]
    if all(speeds) or not has_nvlink:
        return models, [speed or _ANY_PORT for speed in speeds], None
    guess = nvlink_guess.guessed(lines, header, rows)
    guessed = replace(_ANY_PORT, nominal_gb_per_s=guess.gb_per_s)
    return models, [speed or guessed for speed in speeds], guess


def _guess_notes(guess: Guess | None, models: Sequence[str | None]) -> Iterator[str]:
    """Yield a note if the speed of NVLinks is a guess, because models are not given, or are not known."""
    if guess is None:
        return
    unknown = {model for model in models if model and nvlink_of(model) is None}
    known = f"NVLinks of {_checks.shown(', '.join(sorted(unknown)))} are not known" if all(models) else ""
    why = f", as of {guess.why}" if guess.why else ""
    yield f"{known or 'The GPU model is not given'}: {guess.gb_per_s:g} GB/s per NVLink is assumed{why}."


@dataclass(frozen=True, slots=True)
class _Pcie:
    """The PCIe that is assumed, as the text does not state it."""

    gb_per_s: float
    """Of a path PIX."""
    why: str
    """The end of the note on it, such as ", as of PCIe 5 x16"; "" if nothing speaks for it."""

    @classmethod
    def of(cls, models: Iterable[str | None]) -> _Pcie:
        """Return that of GPUs of these models; PCIe 3 if one is unknown."""
        name = pcie_of(models)
        if name is None:
            return cls(PCIE3_X16_GB_PER_S, "")
        gb_per_s = SPEEDS[name].achievable_gb_per_s or PCIE3_X16_GB_PER_S
        return cls(gb_per_s, f", as of PCIe {name.removeprefix('pcie')} x16, which these GPUs have")


def _notes(header: Header, rows: Mapping[str, MatrixRow], pcie: _Pcie) -> list[str]:
    columns = [header.column[gpu] for gpu in header.gpus]
    labels = {rows[gpu].labels[column] for gpu in header.gpus for column in columns}
    notes: list[str] = []
    if kinds := [kind for label, kind in PATHS.items() if label in labels]:
        notes.append(f"The speed of PCIe is not given: {assumed_paths(pcie.gb_per_s, kinds)}{pcie.why}.")
    if missing := [nic for nic in header.nics if nic not in rows]:
        notes.append(f"Network adapters with a column and no row: {', '.join(missing)}.")
    return notes


def _hidden(lines: Sequence[str], header: Header) -> list[str]:
    """Return notes on a matrix without NVLinks; TopologyError if its legend shows that NVLinks were omitted."""
    if len(header.gpus) < 2:
        return []
    legends = [i for i, line in enumerate(lines) if i > header.index and LEGEND.match(line)]
    if not legends and any(map(_HIDES_NVLINKS.search, lines)):
        return [
            "`nvidia-smi topo -mp` hides NVLinks, so that pairs may have faster links than here; give `topo -m`."
        ]
    if not legends:
        return [
            "The text has no legend, so it does not state whether NVLinks are shown (topo -m) or hidden (-mp)."
        ]
    legend = lines[legends[0] :]
    if not any(_NVLINK_IN_LEGEND.match(line) or _LEGEND_BEFORE_NVLINK.match(line) for line in legend):
        raise TopologyError(
            f"line {legends[0] + 1}: the legend has no NV#, so this is `topo -mp`, which hides NVLinks; "
            "assume_no_nvlink=True reads it as a machine without any"
        )
    return []


def _gpus(
    header: Header,
    rows: Mapping[str, MatrixRow],
    models: Sequence[str | None],
    machine: str,
    uuids: Mapping[str, str],
) -> tuple[Gpu, ...]:
    affinities = [rows[gpu].affinity for gpu in header.gpus]
    sockets = _sockets(affinities) or _sockets_of_paths(header, rows)
    gpus: list[Gpu] = []
    for i, (gpu, affinity) in enumerate(zip(header.gpus, affinities, strict=True)):
        cpus, node = affinity.get(CPUS, ""), affinity.get(NUMA, "")
        gpus.append(
            Gpu(
                i,
                gpu,
                model_known(models[i] or "") or models[i],
                machine,
                sockets[i],
                uuid=uuids.get(gpu),
                numa_node=_numa_node(node),
                cpus=cpus if matrix_rows.is_cpu_list(cpus) else None,
            )
        )
    return tuple(gpus)


def _numa_node(cell: str) -> int | None:
    """Return the NUMA node in an affinity cell; None if it has several nodes of CPUs, or none.

    In "0,2-17", which a Grace machine prints, the nodes behind the first are memory of GPUs.
    """
    found = _NODES.fullmatch(cell)
    return int(found[1]) if found else None


def _affinity_notes(header: Header, rows: Mapping[str, MatrixRow]) -> Iterator[str]:
    """Yield notes on affinities that a `Gpu` has no place for."""
    several = _cells(header, rows, NUMA, lambda cell: not cell.isdigit())
    if several:
        yield f"GPUs near several NUMA nodes, of which at most the first, of CPUs, is kept: {several}."
    if own := _cells(header, rows, GPU_NUMA, bool):
        yield f"NUMA nodes of the GPUs' own memory (GPU NUMA ID), not kept: {own}."
    if nics := [
        f"{nic} {' '.join(cells)}"
        for nic in header.nics
        if nic in rows and (cells := [cell for cell in rows[nic].affinity.values() if cell != "N/A"])
    ]:
        yield f"Affinities of network adapters, not kept: {', '.join(nics)}."
    if odd := _cells(header, rows, CPUS, lambda cell: not matrix_rows.is_cpu_list(cell)):
        yield f"CPU affinities that are no lists of CPUs, and left out: {odd}."


def _cells(header: Header, rows: Mapping[str, MatrixRow], title: str, which: Callable[[str], bool]) -> str:
    """Return the cells of a column that `which` chooses, as in "GPU0 0-1, GPU1 2-3"; empty cells are left out."""
    cells = [(gpu, rows[gpu].affinity.get(title, "N/A")) for gpu in header.gpus]
    return ", ".join(f"{gpu} {cell}" for gpu, cell in cells if cell != "N/A" and which(cell))


def _sockets(affinities: Sequence[Mapping[str, str]]) -> Sequence[int | None]:
    """Return the socket of each GPU: one number, from 0, for each distinct NUMA affinity, or else CPU affinity.

    Return () if a GPU has neither.
    """
    for title in (NUMA, CPUS):
        cells = [affinity.get(title, "N/A") for affinity in affinities]
        if "N/A" not in cells and (title == NUMA or all(map(matrix_rows.is_cpu_list, cells))):
            number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
            return [number[cell] for cell in cells]
    return ()


def _sockets_of_paths(header: Header, rows: Mapping[str, MatrixRow]) -> Sequence[int | None]:
    """Return the socket of each GPU by the paths: only those of different sockets have SYS.

    All are None if no pair has SYS or all have it, as in some virtual machines, and if NVLinks hide paths.
    """
    columns = [header.column[gpu] for gpu in header.gpus]
    labels = [[rows[gpu].labels[column] for column in columns] for gpu in header.gpus]
    near = [{j for j, label in enumerate(row) if label != "SYS"} for row in labels]
    number: dict[frozenset[int], int] = {}
    sockets = [number.setdefault(frozenset(group), len(number)) for group in near]
    alike = all(sockets[i] == sockets[j] for i, group in enumerate(near) for j in group)
    known = alike and 1 < len(number) < len(near) and not any(map(_lanes, chain(*labels)))
    return sockets if known else [None] * len(near)


def _links(
    header: Header, rows: Mapping[str, MatrixRow], ports: Sequence[LinkSpeed], pcie_gb_per_s: float
) -> Iterator[tuple[int, int, Link]]:
    columns = [header.column[gpu] for gpu in header.gpus]
    labels = [[rows[gpu].labels[column] for column in columns] for gpu in header.gpus]
    switched = [sum(map(_lanes, row)) > port.most_links for row, port in zip(labels, ports, strict=True)]
    known: dict[tuple[str, bool, LinkSpeed], Link] = {}
    for j, i in combinations(range(len(labels)), 2):
        slower = min(ports[i], ports[j], key=lambda port: (port.gb_per_s, port.kind is not _ANY_PORT.kind))
        key = (labels[i][j], switched[i] or switched[j], slower)
        if key not in known:
            u, v = header.gpus[i], header.gpus[j]
            known[key] = _link(f"line {rows[v].line}: {v} to {u}", *key, pcie_gb_per_s)
        yield j, i, known[key]


def _link(where: str, label: str, switched: bool, port: LinkSpeed, pcie_gb_per_s: float) -> Link:
    width = _lanes(label)
    if not width:
        return path(PATHS[label], pcie_gb_per_s)
    if width > port.most_links:
        raise TopologyError(f"{where} is {label}, more than the {port.most_links} NVLinks of a GPU")
    return Link(LinkKind.NVSWITCH if switched else port.kind, width, width * port.gb_per_s)


def _lanes(label: str) -> int:
    match = NVLINKS.fullmatch(label)
    return int(match[1]) if match else 0


def _nics(lines: Sequence[str], header: Header, rows: Mapping[str, MatrixRow]) -> Iterator[Nic]:
    # Of a name that is given twice, such as below a second matrix, the first counts.
    named = {match[1]: match[2] for match in map(_NIC_NAME.fullmatch, reversed(lines)) if match}
    for nic in header.nics:
        column = header.column[nic]
        paths = tuple(rows[gpu].labels[column] for gpu in header.gpus)
        if not set(paths) <= PATHS.keys():
            line = rows[nic].line if nic in rows else rows[header.gpus[0]].line
            raise TopologyError(f"line {line}: {nic} reaches a GPU by NVLink")
        yield Nic(named.get(nic, nic), paths)
