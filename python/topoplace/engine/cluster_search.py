"""Run a search policy on a cluster: once for each condition of machines, or over the machines of a split.

The search sees the machine, or the machines of a split, as its own cluster, in which GPUs that are not free are
drained.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np

from topoplace.cluster.cluster import Cluster
from topoplace.engine import admission
from topoplace.engine.admission import MAX_SEARCHED_GPUS
from topoplace.engine.effort import Effort
from topoplace.engine.gangs import rules
from topoplace.engine.gangs.offers import Offers, offers_of
from topoplace.engine.gangs.rules import allowed_splits, nearest_of
from topoplace.engine.gangs.splits import MAX_SPLITS, nearest
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.free_links import FreeLinks
from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.machines.machine_options import Choice, MachineOptions, Option, Options, RuleOptions
from topoplace.engine.plan import check_answer
from topoplace.engine.request import exact_request_key
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget
from topoplace.objectives.links import job_link_scores
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.cluster.hosts import HostResources
    from topoplace.engine.gangs.division import Part
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Refusal
    from topoplace.topology.topology import Topology

_LEAST_NODES = 1 << 15
"""Nodes that each search on one machine, or for one split, may visit, whatever the number of searches."""
_MOST_GPUS = 512
"""Limit on the GPUs that are searched together if the job has no embedding in the GPUs of any split."""


class SearchRule(Protocol):
    """Protocol of a search policy, as the engine sees it."""

    def ranked(self, job: JobGraph, cluster: Cluster, effort: Effort) -> Iterator[Placement]:
        """Yield the best placement of each set of GPUs on a small cluster, best first."""
        ...

    def machine_order(self, job: JobGraph, placement: Placement, machine: Cluster) -> tuple[float, ...]:
        """Return the sort key by which placements on different machines compare; smaller is better."""
        ...

    def decision_budget(self) -> WorkBudget:
        """Return the limit on the nodes of all searches for one decision."""
        ...


def is_split(topology: Topology) -> bool:
    """Return True if search policies decide machine by machine on this topology of several machines."""
    return len(topology.template_of) > 1


def ranked(rule: SearchRule, job: JobGraph, cluster: Cluster, effort: Effort) -> Iterator[Placement]:
    """Yield placements on different GPU sets, best first, ties by machine.

    If the job fits a machine, each placement is on one machine: the best of every machine, by `machine_order`, and the
    others that `rule` finds on these machines. Otherwise placements use the fewest machines, the nearest in the network
    first. effort: the work that all candidates after the first may take. If a search reaches its limits without a
    placement, other searches go on; SearchTimeoutError if none finds one.
    """
    view = cluster.view(ClusterView)
    request = view.exact_request(job)
    if not request.size or (not request.takes_parts and request.size > cluster.num_free):
        return
    found = _machine_options(rule, request, view).best() if request.fits_any_machine else None
    if found is not None:
        if isinstance(found[1].option.details, SearchTimeoutError):
            raise _again(found[1].option.details)
        yield _numbered(request, view, *found)
        yield from islice(_on_machines(rule, request, view, effort), 1, None)
    elif request.is_divided:
        yield from _in_parts(rule, request, view, effort)
    elif not job.single_machine:
        yield from _over_machines(rule, request, view, effort)


def ranked_for_parts(
    rule: SearchRule, job: JobGraph, cluster: Cluster, effort: Effort
) -> Iterator[Placement]:
    """Yield placements of a job that takes shares or slices of GPUs on a small cluster, best first.

    The search sees GPUs that can serve the job as free, and all others as drained.
    """
    whole = cluster.view(ClusterView).request(job).whole
    hosts = cluster.hosts
    left = (
        [hosts.left(machine) for machine in range(cluster.topology.num_machines)] if hosts.resources else None
    )
    able = set(admission.able_gpus(job, cluster)).intersection(
        cluster.topology.select(admission.suits_of(job))
    )
    yield from rule.ranked(whole, _with_free(cluster.topology, able, left), effort)


def why_never(job: JobGraph, cluster: Cluster) -> Refusal | None:
    """Return why a job could not run even on the idle cluster; None if no such reason is known."""
    if refusal := admission.why_never(job, cluster.topology, cluster.hosts):
        return refusal
    view = cluster.view(ClusterView)
    request = view.request(job)
    if not (is_split(cluster.topology) or request.is_divided):
        return None
    return rules.why_never(request, view, _all_tasks)


def why_not_now(job: JobGraph, cluster: Cluster) -> Refusal:
    """Return why a job, which could run on an idle cluster, cannot start now."""
    view = cluster.view(ClusterView)
    request = view.request(job)
    if not (is_split(cluster.topology) or request.is_divided):
        return admission.why_not_now(job, cluster)
    offers = _offers(request, view)
    return rules.why_not_now(request, view, offers, _too_large(request, offers, view))


def _too_large(request: JobRequest, offers: Offers, view: ClusterView) -> str | None:
    """Return that the fewest machines for the job have too many GPUs to be searched, if that is so."""
    split = next(nearest(offers, request.size, None, anti_affine=request.anti_affine), ())
    gpus = sum(len(view.classes.gpus_of[machine]) for machine, _ in split)
    if gpus <= MAX_SEARCHED_GPUS:
        return None
    return f"its machines have {gpus} GPUs, and this policy searches at most {MAX_SEARCHED_GPUS} at once"


# ---- one machine ---------------------------------------------------------------------------------------------


def _machine_options(rule: SearchRule, request: JobRequest, view: ClusterView) -> MachineOptions:
    """Return the best option of each machine; where the search found none in time, a last one with the error."""

    def evaluate(machine_class: MachineClass, state: MachineState) -> Options:
        effort = Effort(_machine_budget(rule, view))
        try:
            return tuple(islice(_options(rule, request, machine_class, state, effort), 1))
        except SearchTimeoutError as error:
            return (Option((math.inf,), (), 0.0, _again(error)),)

    def scores(_: MachineClass, option: Option) -> Mapping[str, float]:
        found: Placement | SearchTimeoutError = option.details
        return {} if isinstance(found, SearchTimeoutError) else found.scores

    def build() -> MachineOptions:
        conditions = _conditions(request, view)
        return MachineOptions(conditions, request.whole_job, RuleOptions(conditions, evaluate), scores)

    return view.table((id(rule), request), build)  # `evaluate` holds the rule, which need not be hashable


def _conditions(request: JobRequest, view: ClusterView) -> Conditions:
    return view.conditions(Sight(shares=request.takes_parts))


def _machine_budget(rule: SearchRule, view: ClusterView) -> WorkBudget:
    """Return the limit on the nodes of the search for the best option of one machine."""
    limit = rule.decision_budget().left
    return WorkBudget(None if limit is None else max(_LEAST_NODES, limit // view.classes.num_machines))


def _again(error: SearchTimeoutError) -> SearchTimeoutError:
    """Return a copy of an error, which holds no frames."""
    return SearchTimeoutError(str(error), error.partial)


def _options(
    rule: SearchRule, request: JobRequest, machine_class: MachineClass, state: MachineState, effort: Effort
) -> Iterator[Option]:
    """Yield the ways to place the job on a machine in this state, best first."""
    job, free = request.whole, request.free_on(machine_class, state)
    if (free & request.suitable(machine_class)).bit_count() < request.size:
        return
    machine = _with_free(machine_class.alone, set(members(free)))
    for placement in rule.ranked(job, machine, effort):
        order = rule.machine_order(job, placement, machine)
        check_answer(order, tuple, rule, "machine_order")
        if len(request.memory_limits) > 1:
            order = (max(machine_class.gpus[gpu].memory_gb or 0.0 for gpu in placement.gpus), *order)
        yield Option(order, placement.gpus, 0.0, placement).checked()


def _on_machines(
    rule: SearchRule, request: JobRequest, view: ClusterView, effort: Effort
) -> Iterator[Placement]:
    """Yield every placement on one machine, best first; a machine is searched further once its best one is yielded."""
    entries: list[tuple[tuple[float, ...], int, int, Choice, Iterator[Option]]] = []
    best = _in_time(_machine_options(rule, request, view).ranked(), effort)
    following = next(best, None)
    while entries or following:
        while following and (not entries or (following[1].option.order, following[0]) < entries[0][:2]):
            machine, choice = following
            others = _others(rule, request, view, machine, choice.option, effort)
            heapq.heappush(entries, (choice.option.order, machine, len(entries), choice, others))
            following = next(best, None)
        _, machine, number, choice, others = entries[0]
        yield _numbered(request, view, machine, choice)
        option = next(others, None)
        if option is None:
            heapq.heappop(entries)
        else:
            choice = Choice(option, option.details.scores)
            heapq.heapreplace(entries, (option.order, machine, number, choice, others))


def _in_time(ranked: Iterator[tuple[int, Choice]], effort: Effort) -> Iterator[tuple[int, Choice]]:
    """Yield the machines on which the search found a placement; if there are others, `effort` is not complete."""
    for machine, choice in ranked:
        if isinstance(choice.option.details, SearchTimeoutError):
            effort.complete = False
        else:
            yield machine, choice


def _others(
    rule: SearchRule, request: JobRequest, view: ClusterView, machine: int, first: Option, effort: Effort
) -> Iterator[Option]:
    """Yield the options on a machine other than its best one, `first`, with as much work as that took beforehand."""
    effort.decision = _machine_budget(rule, view)
    described = _conditions(request, view).of_machine(machine)
    try:
        for option in _options(rule, request, *described, effort):
            if set(option.gpus) != set(first.gpus):
                yield option
    except SearchTimeoutError:  # of a search whose limit is a time
        effort.complete = False


def _numbered(request: JobRequest, view: ClusterView, machine: int, choice: Choice) -> Placement:
    """Return the placement by a choice on a machine, in the numbers of the cluster."""
    return _moved(choice.option.details, view.classes.gpus_of[machine], request, view)


# ---- several machines ----------------------------------------------------------------------------------------


def _over_machines(
    rule: SearchRule, request: JobRequest, view: ClusterView, effort: Effort
) -> Iterator[Placement]:
    """Yield placements over the fewest machines, the nearest first; later ones avoid the machines of earlier ones.

    If the job has no placement there, try all machines together, provided that they are few enough to search. An
    anti-affine job, which needs as many machines anyway, gets the best placement of all if these are few enough, unless
    it prefers the machines of one domain.
    """
    offers = _offers(request, view)
    everywhere = _searched_whole(request, offers)
    if request.anti_affine and everywhere and not request.job.prefer:
        yield from _over(rule, request, everywhere, view, effort)
        return
    limit = rule.decision_budget().left
    nodes = None if limit is None else max(_LEAST_NODES, limit // MAX_SPLITS)

    late: list[SearchTimeoutError] = []

    def over(machines: Iterable[int]) -> Iterator[Placement]:
        try:
            yield from islice(_over(rule, request, sorted(machines), view, Effort(WorkBudget(nodes))), 1)
        except SearchTimeoutError as error:
            late.append(error)

    used: set[int] = set()
    for most_memory_gb in request.memory_limits:
        within = offers if most_memory_gb == math.inf else _offers(request, view, most_memory_gb)
        for machines in _disjoint(request, within, view, used):
            for placement in over(machines):
                used |= machines
                yield placement
                effort.complete = False  # of each split, only the best set of GPUs is looked for
    for placement in over(everywhere) if everywhere and not used else ():
        used.update(everywhere)
        yield placement
    if late and not used:
        raise late[0]


def _in_parts(
    rule: SearchRule, request: JobRequest, view: ClusterView, effort: Effort
) -> Iterator[Placement]:
    """Yield at most one placement of a job with groups: on each machine, the best one of the tasks that it gets."""
    from topoplace.engine.gangs import division

    for most_memory_gb in request.memory_limits:
        parts = division.divided(request, _offers(request, view, most_memory_gb), view)
        if parts is None:
            continue
        effort.complete = False
        gpus = [-1] * request.size
        for part, job in zip(parts, division.part_jobs(request.job, parts), strict=True):
            for task, gpu in zip(part.tasks, _gpus_of_part(rule, part, job, view), strict=False):
                gpus[task] = gpu
        if min(gpus) >= 0:
            yield _whole_placement(gpus, request, view)
            return


def _gpus_of_part(rule: SearchRule, part: Part, job: JobGraph, view: ClusterView) -> Sequence[int]:
    """Return the GPU of each task of a part; none if the rule finds no place there."""
    machine_class = view.classes.of(part.machine)

    def find() -> Sequence[int]:
        machine = _with_free(machine_class.alone, set(members(part.usable)))
        found = next(rule.ranked(job, machine, Effort(_machine_budget(rule, view))), None)
        return () if found is None else found.gpus

    key = (id(rule), "part", machine_class, part.usable, exact_request_key(job))
    numbers = view.classes.gpus_of[part.machine]
    *_, local = view.table(key, lambda: (rule, job, find()))  # holds both, so that no others get their ids
    return [numbers[gpu] for gpu in local]


def _whole_placement(gpus: Sequence[int], request: JobRequest, view: ClusterView) -> Placement:
    topology, job = view.cluster.topology, request.job
    preserved = _free_links(request, view).without(view.classes.by_machine(gpus))
    scores = {**job_link_scores(job, gpus, topology), "preserved_bandwidth": preserved}
    return Placement(tuple(gpus), topology=topology, scores=scores, job=job)


def _searched_whole(request: JobRequest, offers: Offers) -> list[int]:
    """Return the machines with GPUs for the job if they are few enough to be searched together; else none."""
    if request.limits_machines:
        return []
    machines: list[int] = offers.machines.tolist()
    return machines if request.size <= int(offers.sizes.sum()) <= _MOST_GPUS else []


def _offers(request: JobRequest, view: ClusterView, most_memory_gb: float = math.inf) -> Offers:
    return offers_of(None, request, view, most_memory_gb, sees_jobs=False)


def _all_tasks(request: JobRequest, _: MachineState) -> int:
    return request.size


def _disjoint(request: JobRequest, offers: Offers, view: ClusterView, used: set[int]) -> Iterator[set[int]]:
    """Yield the machines of splits, the nearest first, none of which is in `used`; the caller adds what it uses."""
    rule, found = nearest_of(request, view), -1
    while found < len(used):
        found = len(used)
        unused = offers.at(np.flatnonzero(~np.isin(offers.machines, list(used))))
        for split in islice(allowed_splits(request, unused, view, rule), MAX_SPLITS):
            machines = {machine for machine, _ in split}
            if machines.isdisjoint(used):
                yield machines


def _over(
    rule: SearchRule, request: JobRequest, machines: Sequence[int], view: ClusterView, effort: Effort
) -> Iterator[Placement]:
    """Yield the best placements over these machines."""
    cluster = view.cluster
    numbers = [gpu for machine in machines for gpu in view.classes.gpus_of[machine]]
    if len(numbers) > MAX_SEARCHED_GPUS:
        return  # `why_not_now` says so
    chosen = _free_among(numbers, request, cluster)
    small = _with_free(
        _part(machines, view),
        {i for i, gpu in enumerate(numbers) if gpu in chosen},
        [cluster.hosts.left(machine) for machine in machines] if cluster.hosts.resources else None,
    )
    for placement in rule.ranked(request.whole, small, effort):
        yield _moved(placement, numbers, request, view)


def _free_among(gpus: Sequence[int], request: JobRequest, cluster: Cluster) -> set[int]:
    """Return those of `gpus` of which the job can get what it needs."""
    if request.takes_parts:
        return set(gpus).intersection(admission.able_gpus(request.job, cluster))
    return set(cluster.occupants(gpus)[0])


def _part(machines: Sequence[int], view: ClusterView) -> Topology:
    """Return the cluster of these machines, or one whose machines are alike and joined alike but have other names."""
    topology = view.cluster.topology
    tiling = topology.tiling
    assert tiling is not None  # `is_split`
    codes = (np.unique(level.codes[machines], return_inverse=True) for level in topology.levels)
    joined = tuple((bool(found[0] < 0), place.tobytes()) for found, place in codes)
    kinds = tuple([topology.template_of[machine] for machine in machines])
    return view.table((kinds, joined), lambda: replace(topology, tiling=tiling.part(machines)))


def _with_free(topology: Topology, free: set[int], hosts: Sequence[HostResources] | None = None) -> Cluster:
    """Return a cluster of this topology in which the GPUs in `free` are free and all others drained."""
    cluster = Cluster(topology, hosts)
    cluster.native.set_unhealthy(topology.unhealthy_gpus, unhealthy=False)
    cluster.native.drain([gpu for gpu in range(topology.num_gpus) if gpu not in free])
    return cluster


def _moved(placement: Placement, numbers: Sequence[int], request: JobRequest, view: ClusterView) -> Placement:
    """Return a placement of a small cluster on the GPUs with these numbers of the whole cluster.

    Its preserved bandwidth becomes that of all machines. It is not called optimal, as the search has seen only some
    machines; host resources are added later.
    """
    gpus = tuple([numbers[gpu] for gpu in placement.gpus])
    scores = placement.scores
    if "preserved_bandwidth" in scores:
        preserved = _free_links(request, view).without(view.classes.by_machine(gpus))
        scores = {**scores, "preserved_bandwidth": preserved}
    return Placement(gpus, topology=view.cluster.topology, scores=scores, job=placement.job)


def _free_links(request: JobRequest, view: ClusterView) -> FreeLinks:
    """Return the links among the GPUs of each machine of which the job can get what it needs."""
    key = FreeLinks, request if request.takes_parts else None
    return view.table(key, lambda: FreeLinks(_conditions(request, view), request.free_on))
