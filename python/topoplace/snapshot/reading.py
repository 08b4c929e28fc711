"""Reading of snapshots: find the scheduler of the given texts, and call its reader."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from topoplace import _checks, _installed
from topoplace.discovery.text import decode
from topoplace.errors import SnapshotError, TopologyError
from topoplace.snapshot.records import Snapshot
from topoplace.topology.topology import Topology

Source = str | bytes | os.PathLike[str]
"""A text, or a path."""


class Texts(Protocol):
    """Protocol of the texts of one scheduler, from which a snapshot is made; readers are entry points."""

    @property
    def remedy(self) -> str:
        """Return the commands that print such texts, such as "`scontrol show node -d`"."""
        ...

    def add(self, text: str) -> bool:
        """Add a text; return False if it is not of this scheduler. Raise SnapshotError for a faulty text of this
        scheduler.
        """
        ...

    def about(self) -> Iterator[str]:
        """Yield the beginnings of messages about the nodes and jobs in the texts."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return True if there is neither a node nor a job."""
        ...

    def snapshot(self, topology: Topology | None) -> Snapshot:
        """Return the snapshot; topology: the cluster, or one machine for each node; None uses only what the texts
        state.
        """
        ...


Sources = Source | Sequence[Source] | Mapping[str, Source]
"""The sources of a snapshot: one text or path, several of them, or several by name."""


def read(source: Sources, topology: Topology | None = None) -> Snapshot:
    """Read a cluster with its running and waiting jobs from the output of its scheduler.

    For Slurm, that is the output of `scontrol show node -d` and `scontrol show job -d`, in text or with `--json`. For
    Kubernetes, it is the JSON of `kubectl get nodes,pods -A -o json`, with Workloads of Kueue and PodGroups of Volcano
    if the cluster has them. The texts may be in one file or in several. A job has the GPUs that the text states;
    `notes` list what the text does not state.

    Args:
        source: A text, a path, the name of a file, or several of them; a mapping names them for messages.
        topology: The cluster, whose machines have the names of the nodes; or one machine that describes each node. None
            uses what the texts state of nodes, which excludes how their GPUs are connected.

    Raises:
        SnapshotError: Names the job or the node that contradicts others, such as a pod on a node that is too small, and
            its source if there are several.
        TopologyError: Names the line or the node that cannot be read.
    """
    if topology is not None:
        _checks.instance(topology, Topology, "topology", SnapshotError)
    named = _named(source)
    readers = _readers()
    for name, one in named.items():
        with _errors_of(partial(_itself, name)):
            for text in _parts(_text(one)):
                _add(text, readers)
    with _errors_of(partial(_origin, named)):
        return _snapshot_of(readers, topology)


def _readers() -> list[Texts]:
    found: list[Texts] = list(_installed.loaded(_installed.SNAPSHOTS, lambda make: make()))
    if not found:
        raise SnapshotError(f"no reader of a scheduler's texts: {_installed.how_to_get('slurm')}")
    return found


def _snapshot_of(readers: Sequence[Texts], topology: Topology | None) -> Snapshot:
    given = [one for one in readers if not one.is_empty]
    if len(given) > 1:
        raise SnapshotError("the texts are of several schedulers; give those of one cluster")
    if not given:
        raise SnapshotError("there is neither a node nor a job")
    return given[0].snapshot(topology)


def _named(source: Sources) -> dict[str, Source]:
    """Return the sources by what messages call them: "" for a single one without a name."""
    if isinstance(source, str | bytes | os.PathLike):
        return {"": source}
    if isinstance(source, Mapping):
        names = [_checks.text(name, "a name in source", SnapshotError) for name in source]
        items = list(source.values())
    else:
        items = list(_checks.sequence(source, "source", SnapshotError))
        names = [f"source[{i}]" for i in range(len(items))]
    for name, one in zip(names, items, strict=True):
        _checks.instance(one, str | bytes | os.PathLike, name, SnapshotError)
    return dict(zip(names, items, strict=True))


@contextmanager
def _errors_of(origin: Callable[[str], str]) -> Generator[None]:
    """Let errors of the block begin with the name of a source. origin: returns it for a message, "" for none."""
    try:
        yield
    except (SnapshotError, TopologyError) as error:
        name = origin(str(error))
        raise type(error)(f"{name}: {error}" if name else str(error)) from None


def _itself(name: str, _message: str) -> str:
    return name


def _origin(named: Mapping[str, Source], message: str) -> str:
    """Return the names of the sources with the job or the node that a message is about; of all, if none has it."""
    about = _ABOUT.match(message.replace("'", ""))
    found: list[str] = []
    for name, one in named.items() if about and len(named) > 1 else ():
        readers = _readers()
        for text in _parts(_text(one)):
            _add(text, readers)
        if about and any(about[1] in reader.about() for reader in readers):
            found.append(name)
    return ", ".join(found or named)


def _text(source: Source) -> str:
    if not isinstance(source, os.PathLike) and not _checks.names_file(source):
        return decode.decoded(source, "snapshot")
    try:
        data = Path(source).read_bytes()  # type: ignore[arg-type]
    except (OSError, ValueError) as error:  # ValueError for a name with a NUL
        why = error.strerror if isinstance(error, OSError) else error
        raise SnapshotError(f"{_checks.shown(str(source))}: {why}") from None
    return decode.decoded(data, "snapshot")


def _parts(text: str) -> Iterator[str]:
    """Yield the text, or each of the JSON objects that it consists of."""
    rest = text.lstrip()
    if not rest.startswith("{"):
        yield text
        return
    decoder = json.JSONDecoder()
    while rest:
        try:
            _, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            end = len(rest)  # its reader names the fault
        yield rest[:end]
        rest = rest[end:].lstrip()


def _add(text: str, readers: Sequence[Texts]) -> None:
    if not any(reader.add(text) for reader in readers):
        remedies = ", or ".join(reader.remedy for reader in readers)
        raise SnapshotError(f"{_checks.shown(text.strip())} is no text of a scheduler; give {remedies}")


_ABOUT = re.compile(r"(?:line [0-9]+: )?(\w+ [^\s:]+)")
"""The beginning of a message about a job, a node or a pod."""
