"""The reader of snapshots: it tells the texts of Slurm and of Kubernetes apart, and has each read by its own module."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from topoplace import _checks
from topoplace.discovery.text import decode, yaml_tree
from topoplace.errors import SnapshotError, TopologyError
from topoplace.snapshot import kubernetes, slurm
from topoplace.snapshot.kubernetes import KubernetesTexts
from topoplace.snapshot.records import Snapshot
from topoplace.snapshot.slurm import SlurmTexts
from topoplace.topology.topology import Topology

Source = str | bytes | os.PathLike[str]
"""A text, or a path."""


Sources = Source | Sequence[Source] | Mapping[str, Source]
"""What a snapshot is read from."""


def read(source: Sources, topology: Topology | None = None) -> Snapshot:
    """Read a cluster with its running and waiting jobs from what its scheduler prints.

    For Slurm, that is the output of `scontrol show node -d` and `scontrol show job -d`, in text or with `--json`. For
    Kubernetes, it is the JSON of `kubectl get nodes,pods -A -o json`, with Workloads of Kueue and PodGroups of Volcano
    if the cluster has them. The texts may be in one file or in several. A job has the GPUs that the text says it has;
    what the text leaves open is in `notes`.

    Args:
        source: A text, a path, the name of a file, or several of them; a mapping names them for messages.
        topology: The cluster, whose machines are called as the nodes are; or one machine that describes each node. None
            takes what the texts say of nodes, which is not how their GPUs are connected.

    Raises:
        SnapshotError: Names the job or the node that contradicts others, such as a pod on a node that is too small; and
            the source that it is from, if there are several.
        TopologyError: Names the line or the node that cannot be read.
    """
    if topology is not None:
        _checks.instance(topology, Topology, "topology", SnapshotError)
    named = _named(source)
    texts, objects = SlurmTexts(), KubernetesTexts()
    for name, one in named.items():
        with _errors_of(partial(_itself, name)):
            for text in _parts(_text(one)):
                _add(text, texts, objects)
    with _errors_of(partial(_origin, named)):
        return _snapshot_of(texts, objects, topology)


def _snapshot_of(texts: SlurmTexts, objects: KubernetesTexts, topology: Topology | None) -> Snapshot:
    if not texts.is_empty and not objects.is_empty:
        raise SnapshotError("some texts are of Slurm, others of Kubernetes; give those of one cluster")
    if not objects.is_empty:
        return kubernetes.snapshot_of(objects, topology)
    if texts.is_empty:
        raise SnapshotError("there is neither a node nor a job")
    return slurm.snapshot_of(texts, topology)


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
        texts, objects = SlurmTexts(), KubernetesTexts()
        for text in _parts(_text(one)):
            _add(text, texts, objects)
        if about and about[1] in (*texts.about(), *objects.about()):
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


def _add(text: str, texts: SlurmTexts, objects: KubernetesTexts) -> None:
    if not text.startswith("{"):
        if not texts.add(text):
            raise SnapshotError(
                f"{_checks.shown(text.strip())} is neither of Slurm nor JSON of Kubernetes; {_REMEDY}"
            )
        return
    document = yaml_tree.fields(next(yaml_tree.documents(text, "snapshot")), "snapshot")
    if not texts.add_json(document, text) and not objects.add_json(text):
        raise SnapshotError(f"JSON with {_checks.shown(', '.join(document))} is not a snapshot; {_REMEDY}")


_ABOUT = re.compile(r"(?:line [0-9]+: )?(\w+ [^\s:]+)")
"""How a message begins that is about a job, a node or a pod."""
_REMEDY = "give `scontrol show node -d` and `scontrol show job -d`, or `kubectl get nodes,pods -A -o json`"
