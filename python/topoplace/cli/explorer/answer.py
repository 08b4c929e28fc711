"""The answer to a state of the page: a drawing, every policy's choice, and details of the chosen one."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from topoplace import DEFAULT_POLICY, collective, drawing, machines, policies
from topoplace.cli.explorer import copies, presets, subject
from topoplace.cli.explorer.state import State
from topoplace.cli.explorer.subject import Condition, FieldError
from topoplace.cluster.cluster import Cluster
from topoplace.drawing import traffic
from topoplace.engine.policy import Policy
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.objectives.communication import communication_time
from topoplace.objectives.job_bandwidth import job_bandwidth
from topoplace.placement import Placement
from topoplace.topology.topology import Topology

SEARCH_S: Final = 0.15
"""Limit, in seconds, on the searches of policies that examine every set of GPUs; their rows state if it was reached."""
_LIMITED: Final = frozenset(("baseline", "mapa-greedy", "mapa-preserve", "mapa-topo-aware"))
_PINNED_AMONG: Final = 200
"""Limit on a policy's candidates that are examined if GPUs are pinned."""
_CANDIDATES: Final = 5
_LARGEST_LEFT: Final = 64


def choices() -> dict[str, Any]:
    """Return the choices of the page's fields: machines, patterns, policies."""
    return {
        "machines": list(machines.names()),
        "patterns": [*PATTERNS, "mesh", "torus"],
        "presets": list(presets.PRESETS),
        "fabrics": list(subject.FABRICS),
        "policies": list(policies.names()),
        "default": DEFAULT_POLICY,
    }


def answer(state: State, own: Topology | None = None) -> dict[str, Any]:
    """Return the content of the page for a state, as values that JSON can represent.

    "problem" names the wrong field, if any; parts that do not depend on it are present. "detail" is about the state's
    policy, and "fields" has the texts of its preset.

    Args:
        own: The topology given to the command, for a state without a machine; None for none.
    """
    found: dict[str, Any] = {"problem": None, "about": None, "drawing": None, "rows": [], "detail": None}
    found["fields"] = {}
    drawn: _Drawing | None = None  # what is known before a field is wrong
    try:
        topology = subject.whole(state, own)
        drawn, found["about"] = _Drawing(state, topology), about(topology)
        if state.preset:
            found["fields"] = presets.fields(topology, state.preset)
            state = replace(state, **found["fields"])
        topology = subject.faulty(topology, state.unhealthy, state.links)
        where = subject.condition(topology, state.busy, state.pinned)
        drawn = _Drawing(state, topology, where.busy)
        job = subject.job(state)
        ranked = sorted(_choices(where, job), key=_Choice.rank)
        shown = next((one for one in ranked if one.policy == state.policy), ranked[0])
        drawn = _Drawing(state, topology, where.busy, shown.placement)
        found["rows"] = [one.row for one in ranked]
        if state.part != "choices":
            found["detail"] = _detail(shown, where, job) | copies.of(state, topology, where, shown.placement)
    except FieldError as problem:
        line = subject.line_of(state.text, problem.message) if problem.field == "text" else None
        found["problem"] = {"field": problem.field, "message": problem.message, "line": line}
    if drawn and state.part != "detail":
        found["drawing"] = drawn.values()
    return found


def about(topology: Topology) -> dict[str, Any]:
    """Return the description of a topology: its name, sizes, notes, and collective library."""
    return {
        "name": topology.name,
        "gpus": topology.num_gpus,
        "machines": topology.num_machines,
        "presets": presets.offered(topology),
        "notes": list(topology.notes[:5]),
        "library": collective.library_of(topology),
    }


# ---- the drawing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What is drawn: all machines, or the open one."""

    state: State
    topology: Topology
    busy: Sequence[int] = ()
    placed: Placement | None = None

    def values(self) -> dict[str, Any]:
        """Return the SVG; the GPU behind each number in it, if one machine is drawn; the GPUs of each tile.

        Also the machines of the choice, if there are several machines.
        """
        names = self.topology.machine_names
        if len(names) == 1:
            return self._whole() | {"machines": []}
        opened = names[self.state.open] if 0 <= self.state.open < len(names) else None
        drawn = self._whole() if opened is None else self._machine(opened)
        gpus = self.placed.gpus if self.placed else ()
        return drawn | {
            "machines": [names[i] for i in sorted({int(self.topology.machine_of[gpu]) for gpu in gpus})]
        }

    def _whole(self) -> dict[str, Any]:
        chosen, job = (self.placed.gpus, self.placed.job) if self.placed else ((), None)
        width, height = self.state.width, self.state.height
        svg = drawing.svg(self.topology, busy=self.busy, chosen=chosen, job=job, width=width, height=height)
        is_tiled = 'data-gpu="' not in svg
        spans = [[gpus[0], gpus[-1]] for gpus in self.topology.gpus_of.values()] if is_tiled else []
        return {"svg": svg, "numbers": None, "tiles": spans, "open": None}

    def _machine(self, name: str) -> dict[str, Any]:
        """Draw one machine of several, with the tasks that are there; links are marked if all of the job is."""
        own = list(self.topology.gpus_of[name])
        local = {gpu: i for i, gpu in enumerate(own)}
        tasks = self.placed.gpus if self.placed else ()
        chosen = [local[gpu] for gpu in tasks if gpu in local]
        job = self.placed.job if self.placed and len(chosen) == len(tasks) else None
        svg = drawing.svg(
            self.topology.machine(name),
            busy=[local[gpu] for gpu in self.busy if gpu in local],
            chosen=chosen,
            job=job,
            width=self.state.width,
        )
        return {"svg": svg, "numbers": own, "tiles": [], "open": name}


# ---- every policy's choice -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """What a policy answers, and how long that took."""

    policy: str
    placement: Placement | None
    refusal: str
    microseconds: float
    note: str = ""

    @cached_property
    def row(self) -> dict[str, Any]:
        """Return the row of the table."""
        found: dict[str, Any] = {
            "policy": self.policy,
            "gpus": None,
            "refusal": self.refusal,
            "note": self.note,
            "microseconds": round(self.microseconds, 1),
        }
        return found | (_carried(self.placement) if self.placement else {})

    def rank(self) -> tuple[bool, float, bool, int]:
        """Return the place among all policies: fastest first, of equal ones the default, refusals last."""
        seconds = self.row.get("seconds")
        place = policies.names().index(self.policy)
        time_s = math.inf if seconds is None else round(seconds, 12)
        return self.placement is None, time_s, self.policy != DEFAULT_POLICY, place


def _carried(placement: Placement) -> dict[str, Any]:
    """Return what a placement carries: seconds, GB/s of rings or of NVSwitches that reduce, the slowest port."""
    assert placement.job is not None
    on_network = bool(placement.remote)
    rated = _rated(placement.topology, placement.job, placement.gpus, on_network)
    return {"gpus": list(placement.gpus), "optimal": placement.optimal, **rated}


@lru_cache(maxsize=2048)
def _rated(topology: Topology, job: JobGraph, gpus: tuple[int, ...], on_network: bool) -> dict[str, Any]:
    """Return seconds and slowest port of a job, and GB/s of the library's rings; policies often choose the same GPUs.

    "nvls" is True if an all-reduce in the NVSwitches is faster; then "ring" has its GB/s. The rings are None for one
    GPU, for remote ones, and where rings cannot be planned.
    """
    measured, ring, by_switches = communication_time(job, gpus, topology), math.inf, False
    if len(gpus) > 1 and not on_network:
        with suppress(ValueError):  # of a machine that is too large for NCCL
            ring, by_switches = job_bandwidth(job, gpus, topology)
    seconds = measured.seconds
    return {
        "seconds": seconds if math.isfinite(seconds) else None,
        "slowest": measured.slowest,
        "ring": ring if math.isfinite(ring) else None,
        "nvls": by_switches,
    }


@lru_cache(maxsize=4)  # a cluster of 100,000 GPUs has tables of 20 MB
def _choices(where: Condition, job: JobGraph) -> tuple[_Choice, ...]:
    """Return what each policy answers, which is kept while people walk along the rows."""
    pinned = frozenset(where.pinned)
    cluster = where.cluster
    if pinned and len(pinned) >= job.num_tasks:  # just these: then every policy can say how it would use them
        cluster, pinned = subject.only_pinned(where), frozenset[int]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mapa-topo-aware, on machines without sockets
        return tuple(_choice(name, cluster, pinned, job) for name in policies.names())


def _choice(name: str, cluster: Cluster, pinned: frozenset[int], job: JobGraph) -> _Choice:
    policy = limited_policy(name)
    begin = time.perf_counter()
    try:
        placement, refusal = _placed(policy, job, cluster, pinned)
    except ValueError as error:
        placement, refusal = None, str(error)
    passed_s = time.perf_counter() - begin
    note = f"searched for {SEARCH_S:g} s only" if name in _LIMITED and passed_s > SEARCH_S else ""
    return _Choice(name, placement, refusal, 1e6 * passed_s, note)


def limited_policy(name: str) -> Policy:
    """Return a policy whose search ends after `SEARCH_S` if it examines every set of GPUs."""
    return policies.get(name, timeout=SEARCH_S) if name in _LIMITED else policies.get(name)


def _placed(
    policy: Policy, job: JobGraph, cluster: Cluster, pinned: frozenset[int]
) -> tuple[Placement | None, str]:
    """Return a policy's placement, or why there is none; with pinned GPUs, its best candidate that has them all."""
    if not pinned:
        placement = policy.place(job, cluster)
        if placement is not None:
            return placement, ""
    explained = policy.explain(job, cluster, top=_PINNED_AMONG if pinned else 1)
    if explained.refusal is not None:
        return None, explained.refusal.reason
    for one in explained.candidates:
        if pinned.issubset(one.gpus):
            return one, ""
    lacking = _in_words(sorted(pinned))
    count = len(explained.candidates)
    return (
        None,
        f"its only candidate lacks {lacking}" if count == 1 else f"none of its {count} best has {lacking}",
    )


def _in_words(gpus: Sequence[int]) -> str:
    return f"GPU{'s' * (len(gpus) > 1)} {', '.join(map(str, gpus[:8]))}{' …' * (len(gpus) > 8)}"


# ---- the chosen policy in detail -------------------------------------------------------------------------------


def _detail(shown: _Choice, where: Condition, job: JobGraph) -> dict[str, Any]:
    """Return the candidates of a policy, or why it has none, and what still fits after its choice."""
    candidates: list[dict[str, Any]] = []
    is_complete = True
    with suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explained = limited_policy(shown.policy).explain(job, where.cluster, top=_CANDIDATES)
        candidates = [_carried(one) for one in explained.candidates]
        is_complete = explained.complete
    return {
        "policy": shown.policy,
        "candidates": candidates,
        "complete": is_complete,
        "left": list(_left(where.cluster, shown.placement)),
        "rings": _rings(shown.placement),
    }


def _rings(placement: Placement | None) -> str:
    """Return the rings of a placement on one machine and their slowest link, in words."""
    if placement is None or placement.job is None:
        return ""
    return "" if placement.remote else rings_in_words(placement.topology, placement.job, placement.gpus)


def rings_in_words(topology: Topology, job: JobGraph, gpus: Sequence[int]) -> str:
    """Return the rings of a job on one machine and their slowest link, in words; "" on several machines."""
    machines = {int(topology.machine_of[gpu]) for gpu in gpus}
    if len(machines) > 1:
        return ""
    name = topology.machine_names[machines.pop()]
    own, machine = topology.gpus_of[name], topology.machine(name)
    return traffic.in_words(machine, traffic.traffic_of(machine, job, [own.index(gpu) for gpu in gpus]), own)


def _left(cluster: Cluster, placement: Placement | None) -> Iterator[dict[str, Any]]:
    """Yield the sizes of further jobs that fit after a placement, with the rings that each would get."""
    after = cluster.copy()
    if placement is not None:
        after.allocate("this job", placement)
    policy = policies.get(DEFAULT_POLICY)
    size = 1
    while size <= min(_LARGEST_LEFT, after.num_free):
        found = policy.place(JobGraph.ring(size), after)
        yield {
            "size": size,
            "fits": found is not None,
            **(_rings_of(found) if found else {"ring": None, "nvls": False}),
            "machines": len({int(after.topology.machine_of[gpu]) for gpu in found.gpus}) if found else 0,
        }
        size *= 2


def _rings_of(placement: Placement) -> dict[str, Any]:
    found = _carried(placement)
    return {"ring": found["ring"], "nvls": found["nvls"]}


Answering = Callable[[State], dict[str, Any]]
"""The function that a server calls: `answer` with the topology of its command."""
