"""Registry of the text formats: recognise the format of a text or file by its content, and parse it."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topoplace import _checks, _installed
from topoplace.discovery import unread_tools
from topoplace.discovery.text import code_blocks, decode, tar_archive, unread
from topoplace.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.discovery.in_use import GpuUse
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology


@dataclass(frozen=True)
class Format:
    """A format and the module that has `recognised` and `parse` for it."""

    name: str
    module: str
    rank: int = 0
    """Rank; of the formats that recognise a text, the one of the lowest rank reads it."""
    in_manifests: bool = False
    """True if a manifest of Kubernetes can look like this format, as it names the same resources or contains the file.
    """

    def recognised(self, text: str) -> bool:
        """Return True if `text` looks like this format; `parse` may still refuse it."""
        found: bool = self._module().recognised(text)
        return found

    def parse(self, data: str | bytes, **options: Any) -> Any:
        """Return the result of the format's parser for `data`; `options` that the parser does not know are dropped.

        If the parser refuses `data`, and one code block of Markdown in it has the format, that block is read.
        """
        known = self.options
        options = {key: value for key, value in options.items() if key in known}
        try:
            found = self._module().parse(data, **options)
        except TopologyError:
            found = self._only_block(data, options)
            if found is None:
                raise
        return _with_note(self, data, found) if self.name in _PASTED_TOGETHER else found

    @property
    def tells_use(self) -> bool:
        """Return True if texts of this format can state the GPUs in use."""
        return hasattr(self._module(), "in_use")

    def in_use(self, data: str | bytes) -> tuple[GpuUse, ...] | None:
        """Return the use of GPUs that `data` states; None if the format states none. TopologyError names a fault."""
        read = getattr(self._module(), "in_use", None)
        return None if read is None else read(data)

    def _only_block(self, data: str | bytes, options: dict[str, Any]) -> Any:
        """Return what the only code block of this format in `data` says; None if it is refused, or there is not one."""
        if len(data) > code_blocks.MAX_CHARACTERS or (isinstance(data, bytes) and tar_archive.is_tar(data)):
            return None
        text = decode.decoded(data, fences=True)
        found = [(block, lines) for block, lines in code_blocks.blocks(text) if self.recognised(block)]
        if len(found) != 1:
            return None
        block, lines = found[0]
        try:
            read = self._module().parse(block, **options)
        except TopologyError:
            return None
        if not hasattr(read, "notes"):
            return read
        outside = unread.note(
            decode.numbered_lines(decode.decoded(data)), lambda number, _: number in lines, _NO_COMMAND
        )
        return replace(read, notes=(*read.notes, *outside))

    @property
    def options(self) -> dict[str, str]:
        """Return the type, as written, of each optional argument of the format's `parse`, by name."""
        _, *parameters = inspect.signature(self._module().parse).parameters.values()
        return {parameter.name: str(parameter.annotation) for parameter in parameters}

    def _module(self) -> Any:
        return importlib.import_module(self.module)


_NO_COMMAND = re.compile(r"(?!)")

_OWN: Final = tuple(
    Format(name, f"topoplace.discovery.{module}", rank)
    for name, module, rank in (
        ("rocm-smi or amd-smi topology", "amd.smi_tables", 0),
        ("matrix of other accelerators", "other_makers.topo_matrix", 0),
        ("nvidia-smi topo -m", "nvidia.topo_matrix", 0),
        ("nvidia-smi topo -p2p", "nvidia.topo_p2p", 0),
        ("nvidia-smi nvlink", "nvidia.nvlink_status", 0),
        ("nvidia-smi -L", "nvidia.gpu_list", 0),
        ("nvidia-smi -q", "nvidia.smi_query", 0),
        ("nvidia-smi", "nvidia.smi_table", 0),
        ("NCCL topology", "nccl.system_xml", 0),
        ("debug log of NCCL", "nccl.debug_log", 0),
        ("measured speeds", "measurements.p2p_and_nccl_tests", 0),
        ("access of p2pBandwidthLatencyTest", "measurements.peer_access", 0),
        ("rocm-bandwidth-test", "measurements.rocm_bandwidth_test", 0),
        ("KFD tree as tar", "amd.kfd", 0),
        ("numactl --hardware", "linux.numactl", 0),
        ("hwloc XML", "hwloc.hwloc_xml", 0),
        ("lstopo text", "hwloc.lstopo_console", 0),
        ("topoplace JSON", "own_json", 9),
    )
)


@cache
def formats() -> tuple[Format, ...]:
    """Return the formats of machines, and those that installed distributions add, such as Slurm's."""
    added = _installed.loaded(_installed.FORMATS, _checked_formats)
    return tuple(sorted((*_OWN, *chain.from_iterable(added)), key=lambda one: one.rank))


def _checked_formats(offered: Iterable[Format]) -> tuple[Format, ...]:
    found = tuple(offered)
    for one in found:
        _checks.instance(one, Format, "a format", ValueError)
    return found


# The outputs of tools that one text may contain several of; only the first of them in `formats` is read.
_PASTED_TOGETHER = (
    "rocm-smi or amd-smi topology",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p",
    "nvidia-smi nvlink",
    "measured speeds",
    "rocm-bandwidth-test",
    "numactl --hardware",
    "lstopo text",
)


def _with_note(read: Format, data: str | bytes, found: Any) -> Any:
    """Return `found`, what the format `read` found in `data`, with a note on other tools' outputs in `data`."""
    from topoplace.topology.topology import Topology

    if not isinstance(found, Topology):
        return found
    text = decode.decoded(data)
    others = [
        one.name
        for one in formats()
        if one is not read and one.name in _PASTED_TOGETHER and one.recognised(text)
    ]
    note = f"The text also has the output of {' and of '.join(others)}, which is left out."
    return replace(found, notes=(*found.notes, note)) if others else found


def format_of(data: str | bytes) -> Format:
    """Return the format of `data`; TopologyError if none recognises it."""
    if isinstance(data, bytes) and tar_archive.is_tar(data):
        return next(found for found in formats() if found.module.endswith("amd.kfd"))
    text = decode.decoded(data)
    if not text.strip():
        raise TopologyError("the text is empty")
    found = next((one for one in formats() if one.recognised(text)), None)
    if found is not None and not found.in_manifests:
        return found
    if why := unread_tools.hidden_format(text):
        raise TopologyError(why)
    if found is not None:
        return found
    if why := unread_tools.refusal(text):
        raise TopologyError(why)
    lines = ((number, line.strip()) for number, line in decode.numbered_lines(text) if line.strip())
    number, start = next(lines, (1, text.strip()))
    raise TopologyError(
        f"line {number}: no known format begins with {_checks.shown(start)}; give the complete output of a tool as "
        "printed, such as `nvidia-smi topo -m`; `topoplace show --list formats` lists what is read"
    )


def busy_gpus(data: str | bytes, topology: Topology) -> tuple[int, ...]:
    """Return the GPUs of `topology`, ascending, that are not free by `data`, a text that states GPUs in use.

    A GPU is free if `data` shows it free. A UserWarning names GPUs that are shown neither in use nor free, and machines
    and GPUs in use that `topology` does not have.

    Raises:
        TopologyError: Names the fault, such as a text that states only the number of GPUs in use.
    """
    from topoplace.discovery import in_use

    form = _format_of_use(data)
    found = form.in_use(data)
    if found is None:
        known = ", ".join(one.name for one in formats() if one.tells_use)
        raise TopologyError(f"{form.name} does not state which GPUs are in use; these do: {known}")
    return in_use.gpus(found, topology)


def _format_of_use(data: str | bytes) -> Format:
    """Return the format of a text about the use of GPUs; TopologyError says what to give if none recognises it."""
    try:
        return format_of(data)
    except TopologyError:
        if (why := unread_tools.refusal_of_use(decode.decoded(data))) is None:
            raise
        raise TopologyError(why) from None


def read(
    data: str | bytes | os.PathLike[str], *, format: str | None = None, **options: Any
) -> Topology | Fabric | Any:
    """Read a text in any of `formats`, or a file with such a text.

    A text about only the network gives a Fabric, which `Topology.cluster` joins with machines. A text about only CPUs
    or measured speeds gives the result of its parser.

    Args:
        data: The text, a path, or a file name with the ending of a text, such as "topo.txt".
        format: The name of a format; None recognises the format by content.
        options: Options of formats, such as gpu_model="A100"; a format ignores the options that it does not need.

    Returns:
        A Topology; for texts without one, a Fabric or the result of the parser.

    Raises:
        TopologyError: Names the line that cannot be read, and the reason.
    """
    for key in options:
        if not any(key in found.options for found in formats()):
            raise TopologyError(f"{key} is not an argument of any format")
    text = _content(data) if isinstance(data, os.PathLike) or _checks.names_file(data) else data
    if format is None:
        return format_of(text).parse(text, **options)
    for found in formats():
        if found.name == format:
            return found.parse(text, **options)
    raise TopologyError(
        f"format = {_checks.shown(format)} is none of {', '.join(found.name for found in formats())}"
    )


def _content(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError for a name with a NUL
        why = error.strerror if isinstance(error, OSError) else error
        raise TopologyError(f"{_checks.shown(str(path))}: {why}") from None
