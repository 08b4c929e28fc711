"""Find the nodes of Slurm that a job may use: by partition, features, types of GPUs, and lists of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.host_list import expanded
from topoplace.discovery.text.yaml_tree import Fields, Items
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm.snapshot.jobs import JobRecord
from topoplace_hosts.slurm.texts import node_states
from topoplace_hosts.slurm.texts.node_states import Meaning

_START = re.compile(r"^[ \t]*NodeName=(\S+)", re.MULTILINE)
_VALUE = re.compile(r"(?:^|\s)(Partitions|ActiveFeatures|Gres|State|ReservationName)=(\S*)")
_TYPE = re.compile(r"gpu:([A-Za-z_][\w.+-]*)")
_ASKED_TYPE = re.compile(r"gres[:/]gpu[:/]([A-Za-z_][\w.+-]*)|(?:^|,)gpu:([A-Za-z_][\w.+-]*)")
_TYPE_OF_A_DEVICE = re.compile(r"g[0-9]{1,4}")
_KEYS = ("Partitions", "ActiveFeatures", "Gres", "State", "ReservationName")
_IN_JSON = ("partitions", "active_features", "gres", "state", "reservation")
_LIMITS = ("Partition", "Reservation", "Features", "ExcNodeList", "ReqNodeList", "NumNodes")
_FEATURES = re.compile(r"[\w.:-]+(?:[&|][\w.:-]+)*")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts that decide which jobs may use a node."""

    partitions: frozenset[str]
    features: frozenset[str]
    gpu_types: frozenset[str]
    reservation: str = ""
    """The reservation that has the node; "?" if the text does not name it, "" for none."""


def of_text(text: str) -> Iterator[tuple[str, NodeFacts]]:
    """Yield each node, by name, in the output of `scontrol show node`."""
    starts = [match.start() for match in _START.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        record = text[start:end]
        values = dict(_VALUE.findall(record))
        match = _START.match(record)
        assert match is not None  # the record begins there
        for name in expanded(match[1], "NodeName"):
            yield name, _facts(*(values.get(key, "") for key in _KEYS))


def of_json(document: Fields) -> Iterator[tuple[str, NodeFacts]]:
    """Yield each node, by name, in the output of `scontrol show node --json`."""
    for one in yaml_tree.items(document, "nodes"):
        node = yaml_tree.fields(one, "a node")
        texts = (_listed(node.get(key)) for key in _IN_JSON)
        yield yaml_tree.scalar(node, "name") or "", _facts(*texts)


class NodeChoice:
    """Chooses the nodes that jobs may use."""

    def __init__(self, nodes: dict[str, NodeFacts]) -> None:
        self._nodes = nodes
        self._known: dict[tuple[object, ...], frozenset[str] | None] = {}
        self._with_partitions = any(one.partitions for one in nodes.values())

    def of(self, job: JobRecord) -> frozenset[str] | None:
        """Return the nodes that a job may use; None for all."""
        asked = (*map(job.get, _LIMITS), _types_asked(job))
        if asked not in self._known:
            tests = list(self._tests(job))
            found = frozenset(
                name for name, facts in self._nodes.items() if all(test(name, facts) for test in tests)
            )
            self._known[asked] = None if len(found) == len(self._nodes) else found
        return self._known[asked]

    def _tests(self, job: JobRecord) -> Iterator[Callable[[str, NodeFacts], bool]]:
        partitions = frozenset(filter(None, job.get("Partition").split(",")))
        if partitions and self._with_partitions:
            yield lambda _, facts: not partitions.isdisjoint(facts.partitions)
        if wanted := job.get("Reservation"):
            yield lambda _, facts: facts.reservation in (wanted, "?")
        elif any(one.reservation for one in self._nodes.values()):
            yield lambda _, facts: not facts.reservation
        if types := _types_asked(job):
            yield lambda _, facts: types <= facts.gpu_types
        if (asked := job.get("Features")) and _FEATURES.fullmatch(asked):
            yield lambda _, facts: _has_features(asked, facts.features)
        if excluded := job.get("ExcNodeList"):
            others = frozenset(expanded(excluded, f"{job.where}: ExcNodeList"))
            yield lambda name, _: name not in others
        if required := job.get("ReqNodeList"):
            named = frozenset(expanded(required, f"{job.where}: ReqNodeList"))
            if len(named) == job.number("NumNodes"):
                yield lambda name, _: name in named

    def left_out(self, job: JobRecord) -> Iterator[str]:
        """Yield a sentence for each demand of a job on nodes that `of` ignores."""
        if (asked := job.get("Features")) and not _FEATURES.fullmatch(asked):
            yield f"the constraint {asked} is not read, and left out"
        if required := job.get("ReqNodeList"):
            named = frozenset(expanded(required, f"{job.where}: ReqNodeList"))
            if len(named) != job.number("NumNodes"):
                yield f"that it needs {required} and other nodes is left out"

    def kinds_asked(self, job: JobRecord, machines: frozenset[str] | None) -> frozenset[str]:
        """Return the types of GPUs that a job requests, if a node that it may use has several; else none.

        machines: the nodes that the job may use; None for all.
        """
        types = _types_asked(job)
        here = (facts for name, facts in self._nodes.items() if machines is None or name in machines)
        return types if any(len(facts.gpu_types) > 1 for facts in here) else frozenset()


class GpuKinds:
    """The Gres type and the model of each GPU."""

    def __init__(self, topology: Topology, described: Callable[[], Topology]) -> None:
        """described: returns the nodes without a template, so that the models of their GPUs are the types of Gres."""
        self._topology = topology
        self._described = described

    @cached_property
    def _models(self) -> list[tuple[str, str | None, str | None]]:
        """The node, the type and the model of each GPU."""
        nodes, topology = self._described(), self._topology
        return [
            (name, nodes.gpus[place].model, topology.gpus[gpu].model)
            for name, places in nodes.gpus_of.items()
            for place, gpu in zip(places, topology.gpus_of.get(name, ()), strict=False)
        ]

    def models(self, kind: str, machines: frozenset[str] | None) -> tuple[str, ...]:
        """Return the models of the GPUs of a type on machines; () if other GPUs there have such a model, too."""
        here = [(own, model) for name, own, model in self._models if machines is None or name in machines]
        wanted = {model for own, model in here if own == kind}
        others = {model for own, model in here if own != kind}
        if None in wanted or wanted & others:
            return ()
        return tuple(sorted(model for model in wanted if model))


def _facts(partitions: str, features: str, gres: str, state: str, reservation: str) -> NodeFacts:
    types = frozenset(_TYPE.findall(gres))
    reserved = Meaning.RESERVED in node_states.meanings(state)
    return NodeFacts(
        frozenset(partitions.split(",")) - {""},
        frozenset(features.split(",")) - {""},
        types,
        reservation or ("?" if reserved else ""),
    )


def _types_asked(job: JobRecord) -> frozenset[str]:
    requests = (job.get(f"TresPer{what}") for what in ("Node", "Job", "Task", "Socket"))
    found = (first or second for text in requests for first, second in _ASKED_TYPE.findall(text))
    return frozenset(one for one in found if not _TYPE_OF_A_DEVICE.fullmatch(one))


def _has_features(asked: str, features: frozenset[str]) -> bool:
    """Return True if a node with these features meets a constraint; & binds stronger than |."""
    return any(features.issuperset(every.split("&")) for every in asked.split("|"))


def _listed(value: object) -> str:
    if isinstance(value, Items):
        found: Sequence[object] = value
        return ",".join(one for one in found if isinstance(one, str))
    return value if isinstance(value, str) else ""
