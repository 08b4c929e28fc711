"""Write Slurm's `gres.conf` for a topology: a gres type for each device, so that jobs can ask for exact devices.

With `--gres=gpu:2`, Slurm gives any two GPUs. With `gres:gpu:g6:1,gres:gpu:g3:1`, it gives exactly GPUs 6 and 3,
because the type `g6` has one device. Reading `gres.conf` is the work of `topoplace_hosts.slurm.texts.gres`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from topoplace.discovery.text.host_list import folded
from topoplace.errors import TopologyError
from topoplace.topology.device_numbers import device_numbers
from topoplace.topology.links.link_kinds import NVLINKS, LinkKind
from topoplace.topology.topology import Topology

DEVICE_FILE = "/dev/nvidia{number}"
"""The device file of a GPU, by the number in its name."""
_TYPE = re.compile(r"(?:gres[:/])?gpu:g([0-9]{1,4})(?:[:=]1)?")
_UNTYPED = re.compile(r"(?:gres[:/])?gpu(?::([A-Za-z_][\w.-]{0,63}))?(?:[:=]([0-9]{1,4}))?")
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LANES = NVLINKS | {LinkKind.NVSWITCH, LinkKind.XGMI}


def gres_conf(topology: Topology, *, device_file: str = DEVICE_FILE, types: bool = True) -> str:
    """Return the text of a `gres.conf` for the machines of `topology`, whose names are those of Slurm's nodes.

    device_file: with {number} for the GPU's number in `device_numbers`, such as 6 for "GPU6", and {node} for the
    machine's name.
    types: False leaves the types out, and writes `Links` with the number of NVLinks or xGMI links of each pair:
    Slurm then chooses by itself.
    TopologyError for a machine whose name Slurm does not accept, for a MIG slice, or a pattern without {number}.
    """
    if "{number}" not in device_file:
        raise TopologyError(f"device_file = {device_file!r} has no {{number}}")
    found: list[tuple[str, str]] = []
    for node, gpus in _nodes(topology):
        files = _file_numbers(topology, node, gpus)
        for number, (gpu, on_disk) in enumerate(zip(gpus, files, strict=True)):
            file = device_file.replace("{number}", str(on_disk)).replace("{node}", node)
            what = f"Type={type_of(number)}" if types else f"Links={_links(topology, gpu, gpus)}"
            found.append((node, f"Name=gpu {what} File={file}"))
    return "".join(f"NodeName={folded(nodes)} {line}\n" for line, nodes in _by_line(found))


def _file_numbers(topology: Topology, node: str, gpus: Sequence[int]) -> Sequence[int]:
    """Return the number of each GPU's device file: gaps, such as that of a lost GPU, stay."""
    devices = [topology.gpus[gpu] for gpu in gpus]
    for device in devices:
        if device.parent is not None or device.fraction < 1:
            raise TopologyError(
                f"machine {node!r}: {device.name} is a MIG slice, which has no gres type; describe this"
                " machine to Slurm by AutoDetect=nvml, and leave it out of the topology"
            )
    numbers = device_numbers(topology)
    return [numbers[gpu] for gpu in gpus]


def node_gres(topology: Topology, *, types: bool = True) -> Mapping[str, str]:
    """Return the value of `Gres=` in `slurm.conf` for each machine of `topology`, by its name."""
    return {
        node: ",".join(f"gpu:{type_of(number)}:1" for number in range(len(gpus)))
        if types
        else f"gpu:{len(gpus)}"
        for node, gpus in _nodes(topology)
    }


def type_of(number: int) -> str:
    """Return the gres type of the device with this number on its machine."""
    return f"g{number}"


def tres_of(numbers: Iterable[int]) -> str:
    """Return the value of `TresPerNode=` for exactly these devices of each node, in this order."""
    return ",".join(f"gres:gpu:{type_of(number)}:1" for number in numbers)


def numbers_in(tres: str) -> tuple[int, ...] | None:
    """Return the device numbers, in order, in a text that `tres_of` returned; None for any other text."""
    matches = [_TYPE.fullmatch(part) for part in tres.split(",")]
    numbers = tuple(int(match[1]) for match in matches if match)
    return numbers if len(numbers) == len(matches) == len(set(numbers)) else None


def count_in(tres: str) -> tuple[int, str | None] | None:
    """Return how many GPUs of each node a request such as `gres:gpu:4` or `gpu:V100:4` asks for, and their model.

    None if it asks for anything else.
    """
    match = _UNTYPED.fullmatch(tres)
    if match is None or _TYPE.fullmatch(tres):
        return None
    count = int(match[2] or 1)
    return (count, match[1]) if count else None


def _nodes(topology: Topology) -> Iterator[tuple[str, Sequence[int]]]:
    for node, gpus in topology.gpus_of.items():
        if not _NODE_NAME.fullmatch(node):
            raise TopologyError(
                f"machine {node!r}: Slurm's node names have letters, digits, '.', '_' and '-'"
            )
        yield node, gpus


def _links(topology: Topology, gpu: int, gpus: Sequence[int]) -> str:
    """Return the lanes from `gpu` to each GPU of its machine, -1 for itself."""
    links = [topology.link(gpu, other) for other in gpus]
    return ",".join(
        "-1" if other == gpu else str(link.lanes if link.kind in _LANES else 0)
        for other, link in zip(gpus, links, strict=True)
    )


def _by_line(found: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each line with the nodes that share it, in an order in which each node's devices keep theirs."""
    lines_of: dict[str, list[str]] = {}
    for node, line in found:
        lines_of.setdefault(node, []).append(line)
    alike = sorted(lines_of.items(), key=lambda item: item[1])
    for lines, group in groupby(alike, key=lambda item: item[1]):
        nodes = [node for node, _ in group]
        yield from ((line, nodes) for line in lines)
