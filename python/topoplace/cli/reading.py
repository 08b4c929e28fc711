"""Readers of the inputs that command-line arguments name: texts, topologies, job logs, profiles."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from topoplace import _installed
from topoplace._similar_names import did_you_mean
from topoplace.cli import flags

if TYPE_CHECKING:
    from topoplace.cluster.hosts import HostResources
    from topoplace.discovery import Format
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology

_MAX_UNPACKED = 256 << 20
_NO_LIMIT = 1 << 30
"""The number of CPUs, or of GB of memory, that stands for an unlimited amount on a machine."""
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def topology(arguments: argparse.Namespace) -> Topology:
    """Return the topology that the argument TOPO names: a built-in machine or a file."""
    return with_gpus(topology_or_network(arguments.topology, arguments), arguments.topology)


def host_machine(arguments: argparse.Namespace) -> Topology:
    """Return the topology that the optional argument TOPO names; without it, that of this host."""
    if arguments.topology is None:
        return this_host(
            "name the machine as TOPO: a file, or one that `topoplace show --list machines` lists"
        )
    return topology(arguments)


def this_host(otherwise: str) -> Topology:
    """Return the topology of this host.

    otherwise: advice for a host without GPUs. A TopologyError has it as a note, after one for each source without GPUs.
    """
    from topoplace.errors import TopologyError
    from topoplace.topology.topology import Topology

    try:
        return Topology.discover()
    except TopologyError as error:
        message, *reasons = str(error).splitlines()
        lines = TopologyError(message)
        for reason in (*reasons, otherwise):
            lines.add_note(reason)
        raise lines from None


def topology_or_network(source: str, arguments: argparse.Namespace) -> Any:
    """Return the object that `source`, the only one of a command, names: a `Topology`, a `Fabric`, or another object.

    Raise ValueError if options supply facts about a built-in machine, whose facts are complete.
    """
    for flag in ("--gpu-model", "--assume-no-nvlink", "--assume"):
        if getattr(arguments, flag[2:].replace("-", "_"), None) and is_built_in(source):
            raise ValueError(f"{flag}: {source} is a built-in machine, which leaves nothing open")
    return described_object(source, arguments)


def described(source: str, arguments: argparse.Namespace) -> Topology:
    """Return the topology that `source` names: a built-in machine, or a file whose format is recognised by its content.

    Raise ValueError if the file describes something else, or if neither exists, with similar names.
    """
    return with_gpus(described_object(source, arguments), source)


def described_object(source: str, arguments: argparse.Namespace) -> Any:
    """Return the built-in machine, or the content of the file, that `source` names: a `Topology`, `Fabric` or other
    object.

    Raise ValueError, with similar names, if there is neither a machine nor a file of this name.
    """
    from topoplace import machines

    if is_built_in(source):
        return machines.get(source)
    if source != "-" and not os.path.exists(source):
        hint = _written_by_example(source) or did_you_mean(source, machines.names())
        raise ValueError(f"{source}: no such file, and no built-in machine{hint and f'; {hint}'}")
    return parsed(source, arguments)


def _written_by_example(name: str) -> str:
    """Return how to get a missing file that `--help` names; "" for others."""
    from topoplace.cli.example_files import files

    return f"`topoplace example {name}` writes one" if name in files() else ""


def hosts(arguments: argparse.Namespace) -> HostResources:
    """Return each machine's CPUs and memory from --cpus and --memory-gb; a resource not given is unlimited."""
    from topoplace.cluster.hosts import HostResources

    cpus, memory_gb = arguments.cpus, arguments.memory_gb
    with flags.named(cpus="--cpus", memory_gb="--memory-gb"):
        return HostResources(
            _NO_LIMIT if cpus is None else cpus, _NO_LIMIT if memory_gb is None else memory_gb
        )


def is_built_in(source: str) -> bool:
    """Return True if `source` is the name of a built-in machine."""
    from topoplace import machines

    return source in machines.names()


def with_gpus(found: Any, source: str) -> Topology:
    """Return `found`, the content of the file `source`, if it is a `Topology`; ValueError if it is anything else.

    The message says what the file describes and how to use it.
    """
    from topoplace.topology.topology import Topology

    if not isinstance(found, Topology):
        ways = {
            "Fabric": "FILE --machine TOPO",
            "NumaNodes": "TOPO --numa FILE",
            "ndarray": "TOPO --measured FILE",
        }
        kind = type(found).__name__
        what = {"Fabric": "a network", "NumaNodes": "NUMA nodes", "ndarray": "measured speeds"}.get(
            kind, kind
        )
        raise ValueError(
            f"{shown(source)}: describes {what}, not machines with GPUs; "
            f"`topoplace show {ways.get(kind, 'FILE')}` can use it"
        )
    return found


def parsed(
    source: str,
    arguments: argparse.Namespace,
    template: Topology | None = None,
    data: bytes | None = None,
) -> Any:
    """Parse a file in any known format, or standard input for `-`; return a `Topology`, `Fabric` or other object.

    The format determines the type of the result. A topology is called after the file, unless the text names it.
    template: the machine that each host of a network file stands for; ValueError if the file describes machines itself.
    data: the content of the file; None to read it.
    """
    from topoplace import discovery
    from topoplace.topology.topology import Topology

    if data is None:
        data = topology_data(source)
    options = {
        key: getattr(arguments, key)
        for key in ("gpu_model", "assume_no_nvlink")
        if getattr(arguments, key, None)
    }
    if (name := _name_of(source)) is not None:
        options["name"] = name
    with errors_of(source):
        form = discovery.format_of(data)
        assumed = _assumed(getattr(arguments, "assume", []), form)
        _refuse_contradiction(options, assumed)
        given_by = {"gpu_model": "--gpu-model"} | {key: f"--assume {key}" for key in assumed}
        with flags.named(**given_by):
            found = form.parse(data, **{**options, **assumed}, template=template)
        if template is not None and isinstance(found, Topology) and "template" not in form.options:
            raise ValueError("describes machines itself; --machine goes with a file about the network")
        return found


def busy_gpus(source: str, topology: Topology) -> tuple[int, ...]:
    """Return the GPUs of `topology` that a tool's output, in a file or standard input for `-`, shows in use."""
    from topoplace import discovery

    with errors_of(source):
        return discovery.busy_gpus(topology_data(source), topology)


def topology_data(source: str) -> bytes:
    """Return the content of a file with a topology, unpacked if it is gzipped."""
    from topoplace.discovery.text import decode

    return _unpacked(content(source, decode.MAX_BYTES), shown(source))


def _name_of(source: str) -> str | None:
    """Return the name of the file `source` without directories and suffix; None for a pipe or a device."""
    stem = Path(source.removesuffix(".gz")).stem
    return os.fsencode(stem).decode("utf-8", "replace") if os.path.isfile(source) else None


def _assumed(pairs: list[str], found: Format) -> dict[str, Any]:
    """Return the arguments given by `--assume NAME=VALUE`, converted to the types that the format's parser takes."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        key, _, entry = key.partition(".")
        read = _as_type(found.options.get(key, ""), value)
        if not value or read is None or bool(entry) != isinstance(read, dict):
            known = ", ".join(
                name for name, type_ in found.options.items() if _as_type(type_, "0") is not None
            )
            raise ValueError(
                f"--assume {pair}: must be NAME=VALUE for {found.name}, with NAME one of {known}"
            )
        if not entry and key in options:
            raise ValueError(f"--assume {pair}: {key} is also {options[key]}")
        options[key] = options.get(key, {}) | {entry: value} if entry else read
    return options


def _refuse_contradiction(options: Mapping[str, Any], assumed: Mapping[str, Any]) -> None:
    """Raise ValueError, naming both, if --assume has another value than the option for the same argument."""
    if (model := options.get("gpu_model")) is not None and assumed.get("gpu_model", model) != model:
        raise ValueError(
            f"--gpu-model {model} and --assume gpu_model={assumed['gpu_model']} differ; give one of them"
        )
    if "assume_no_nvlink" in options and assumed.get("assume_no_nvlink") is False:
        raise ValueError("--assume-no-nvlink and --assume assume_no_nvlink=false contradict each other")


def _as_type(type_: str, value: str) -> Any:
    """Return `value` converted to the type that the annotation text `type_` names; None if that is impossible.

    For a mapping of strings, return {}; the caller adds the entry.
    """
    if "Topology" in type_:
        return None
    if "Mapping[str, str]" in type_:
        return {}
    if "Collection[str]" in type_:
        return value.split(",")
    if "bool" in type_:
        return _FLAGS.get(value.lower())
    try:
        return (
            int(value) if "int" in type_ else float(value) if "float" in type_ else value if type_ else None
        )
    except ValueError:
        return None


@contextmanager
def errors_of(source: str) -> Generator[None]:
    """Turn a ValueError of the block into one whose message starts with the name of the file `source`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{shown(source)}: {error}") from None


def content(source: str, most_bytes: int = _MAX_UNPACKED) -> bytes:
    """Return the bytes of a file, or of standard input for `-`; ValueError if it is blank, or larger than `most_bytes`.

    The size of a file is checked before it is read. A source without a size, such as a device, is read up to the limit.
    """
    if source != "-":
        with flags.of_file(source), open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(most_bytes + 1) if size <= most_bytes else b""
    elif sys.stdin:
        data = sys.stdin.buffer.read(most_bytes + 1)
        size = len(data)
    else:
        raise ValueError(f"{shown(source)}: closed")
    if max(size, len(data)) > most_bytes:
        raise ValueError(f"{shown(source)}: more than {most_bytes} bytes")
    if not data.strip():
        raise ValueError(f"{shown(source)}: empty")
    return data


@contextmanager
def seekable(source: str) -> Generator[IO[bytes]]:
    """Open a file, or standard input for `-`, whose content is kept in memory unless it can be read again."""
    if source != "-":
        with flags.of_file(source), open(source, "rb") as file:
            if file.seekable() and os.path.isfile(source):
                yield file
                return
    yield io.BytesIO(content(source))


def unpacked(source: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`, unpacked if they are gzipped."""
    return _unpacked(content(source), shown(source))


def profile(source: str) -> PerformanceProfile:
    """Read a performance profile, JSON or CSV, from a file or from standard input for `-`."""
    from topoplace.jobs.performance_profile import PerformanceProfile

    described = text(source)
    form = PerformanceProfile.from_json if described.lstrip().startswith("{") else PerformanceProfile.from_csv
    with errors_of(source):
        return form(described)


def rates(source: str) -> Rates:
    """Return the rates called `source`, or those of a file: of rates, or of measurements that correct them."""
    from topoplace.collective import PRESETS, Rates

    if source in PRESETS:
        return PRESETS[source]
    if not os.path.exists(source):
        raise ValueError(f"--rates = {source[:60]!r} is no file, and not one of {', '.join(PRESETS)}")
    described = text(source)
    with errors_of(source):
        measuring = _installed.module("measuring")
        form: Callable[[str], Rates] = measuring.rates_from_json if measuring else Rates.from_json
        return form(described)


def _unpacked(data: bytes, where: str) -> bytes:
    """Return `data`, unpacked if it is a gzip file; ValueError if that is damaged or too large.

    where: name of the source in messages.
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as members:
            unpacked = members.read(_MAX_UNPACKED + 1)
    except EOFError:
        raise ValueError(f"{where}: gzip, cut off") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{where}: damaged gzip, or something else after it ({error})") from None
    if len(unpacked) > _MAX_UNPACKED:
        raise ValueError(f"{where}: gzip, more than {_MAX_UNPACKED} bytes")
    return unpacked


def text(source: str) -> str:
    """Return the text of a file, gzipped or not, or of standard input for `-`; ValueError if empty or not text."""
    where, data = shown(source), unpacked(source)
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: not a text file (byte {error.start} is 0x{data[error.start]:02x})"
        ) from None
    if "\0" in decoded:
        raise ValueError(f"{where}: not a text file (byte {data.index(0)} is 0)")
    return decoded


def shown(source: str) -> str:
    """Return the name of a source in messages."""
    return "standard input" if source == "-" else source
