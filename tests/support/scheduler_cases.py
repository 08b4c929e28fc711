"""Cases of other schedulers' own tests, as topologies, jobs with groups, and whether a search found that they fit.

Each pod is a task, and a machine has as many GPUs as it can still take pods. A case is about one job; what a job before
it has got counts as used.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import topoplace as tp

Facts = Mapping[str, Any]


@dataclass
class Case:
    """One job, the machines it may use, and what it asks for."""

    name: str
    room: dict[str, int]
    """How many tasks each machine has room for; machines without room are left out."""
    domains: dict[str, dict[str, str | None]]
    """For each level, from the machines up: the domain of each machine."""
    size: int
    groups: list[tp.Group]
    feasible: bool
    wishes: int = 0
    """How many preferred groups a search found that can be in one domain at the same time."""

    def cluster(self) -> tp.Cluster | None:
        """Return the cluster; None if no machine has room."""
        names = tuple(name for name, room in self.room.items() if room)
        if not names:
            return None
        machines = [
            tp.Topology.from_links(min(self.room[name], max(self.size, 64)), [], 12.0, name=name)
            for name in names
        ]
        levels = [tp.Level(level, tuple(of[name] for name in names)) for level, of in self.domains.items()]
        fabric = tp.Fabric(names, tuple(levels))
        return tp.Cluster(tp.Topology.cluster(machines, fabric=fabric))

    def job(self) -> tp.JobGraph:
        return tp.JobGraph.ring(self.size).with_(groups=self.groups)

    def is_together(self, group: tp.Group, level: str, placement: tp.Placement) -> bool:
        """Return whether a group is on one machine, or in one domain of a level."""
        topology = placement.topology
        machines = {topology.machine_names[topology.machine_of[placement.gpus[task]]] for task in group.tasks}
        found = {self.domains[level][name] for name in machines} if level != "machine" else machines
        return len(machines) == 1 or (len(found) == 1 and None not in found)


@dataclass
class Report:
    """The cases of a file: those translated, and why others are not."""

    cases: list[Case] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


class Untranslated(Exception):  # noqa: N818
    """Why a case is left out."""


def read(folder: Path, name: str) -> Report:
    """Return the cases of a file that ask for groups or levels."""
    report = Report()
    for facts in json.loads((folder / f"{name}.json").read_text("utf-8"))["cases"]:
        try:
            cases = _READERS[name](facts)
            if not any(case.groups for case in cases):
                raise Untranslated("asks for no groups or levels")
            report.cases += cases
        except Untranslated as why:
            report.others[str(why)] += 1
    return report


def _taken(room: Facts, need: Facts) -> int:
    """Return how many pods of this need there is room for."""
    return min((int(room.get(name, 0) // amount) for name, amount in need.items() if amount), default=0)


def _left(node: Facts) -> dict[str, float]:
    used = node.get("used", {})
    return {name: amount - used.get(name, 0) for name, amount in node["capacity"].items()}


def _one_need(pods: Iterable[Facts]) -> dict[str, float]:
    needs = {json.dumps(pod["needs"], sort_keys=True) for pod in pods}
    if len(needs) != 1:
        raise Untranslated("its pods need different amounts")
    return dict(json.loads(needs.pop()))


def _path(at: Facts, levels: Sequence[str]) -> str | None:
    return "/".join(at[level] for level in levels) if all(level in at for level in levels) else None


# ---- Kueue ---------------------------------------------------------------------------------------------------


def _kueue(facts: Facts) -> list[Case]:
    if facts["kind"] != "place":
        raise Untranslated(f"{facts['kind']}: no decision about a new job")
    if any(oracle.get("feasible") is None for oracle in facts["oracle"]):
        raise Untranslated("its levels are wrong, no search says whether it fits")
    if len(facts["requests"]) == 1:
        return [_kueue_request(facts, 0)]
    numbers = range(len(facts["requests"]))
    return [replace(_kueue_request(facts, number), name=f"{facts['id']}/{number}") for number in numbers]


def _kueue_request(facts: Facts, number: int) -> Case:
    asked, oracle, levels = facts["requests"][number], facts["oracle"][number], facts["levels"]
    need = {"pods": 1, **asked["per_pod"]}
    size = asked["pods"]
    if leader := asked.get("leader"):
        if leader["per_pod"] != asked["per_pod"]:
            raise Untranslated("its pods need different amounts")
        size += leader["pods"]
    leaves = _kueue_leaves(facts, number)
    machines = {path: at for path, (at, _) in leaves.items()}
    domains = {
        level: {path: _path(at, levels[: depth + 1]) for path, at in machines.items()}
        for depth, level in reversed(list(enumerate(levels[:-1])))
    }
    named = {level: "machine" if level == levels[-1] else level for level in levels}
    everything = tuple(range(size))
    groups: list[tp.Group] = []
    if level := asked.get("required"):
        groups.append(tp.Group(everything, named[level]))
    if level := asked.get("preferred"):
        groups.append(tp.Group(everything, prefer=named[level]))
    for layer in asked.get("slices", ()):
        for first in range(0, asked["pods"], layer["size"]):
            tasks = range(first, min(first + layer["size"], asked["pods"]))
            groups.append(tp.Group(tuple(tasks), named.get(layer["level"], layer["level"])))
    room = {path: _taken(amounts, need) for path, (_, amounts) in leaves.items()}
    wishes = int(
        "preferred" in asked and oracle.get("feasible") and _least(oracle, levels, asked["preferred"]) == 1
    )
    return Case(facts["id"], room, domains, size, groups, bool(oracle.get("feasible")), wishes)


def _least(oracle: Facts, levels: Sequence[str], level: str) -> int:
    return int(oracle["min_domains"][levels.index(level)])


def _kueue_leaves(facts: Facts, number: int) -> dict[str, tuple[Facts, dict[str, float]]]:
    """Return where each leaf is, and what is left in it before a request."""
    levels, barred = facts["levels"], facts["requests"][number].get("ineligible", {})
    leaves: dict[str, tuple[Facts, dict[str, float]]] = {}
    for node in facts["nodes"]:
        at = node["at"]
        path = _path(at, levels)
        if (
            path is None
            or not node.get("in_tree", True)
            or node["name"] in barred
            or at[levels[-1]] in barred
        ):
            continue
        amounts = leaves.setdefault(path, (at, {}))[1]
        for name, amount in _left(node).items():
            amounts[name] = amounts.get(name, 0) + amount
    for used in facts.get("domain_used", ()):
        _charge(leaves, used["at"], used["used"], 1, levels)
    for asked, got in zip(facts["requests"][:number], facts["expected"], strict=False):
        need = {"pods": 1, **asked["per_pod"]}
        for part in (*got.get("assignment", ()), *got.get("leader_assignment", ())):
            _charge(leaves, part["at"], need, part["pods"], levels)
    return leaves


def _charge(leaves: Any, at: Facts, need: Facts, count: int, levels: Sequence[str]) -> None:
    for where, amounts in leaves.values():
        if all(where[level] == at[level] for level in levels if level in at):
            for name, amount in need.items():
                amounts[name] = amounts.get(name, 0) - amount * count


# ---- KAI -----------------------------------------------------------------------------------------------------


def _kai(facts: Facts) -> list[Case]:
    if facts["kind"] == "domain_filter":
        raise Untranslated("domain_filter: a step inside, not a decision")
    oracle = {one["job"]: one for one in facts["oracle"]}
    pending = [job for job in facts["jobs"] if any(task["state"] == "pending" for task in job["tasks"])]
    return [_kai_job(facts, job, oracle[job["name"]]) for job in pending]


def _kai_job(facts: Facts, job: Facts, oracle: Facts) -> Case:
    if oracle.get("feasible_all_tasks") is None:
        raise Untranslated("no search says whether it fits")
    tasks = [task for task in job["tasks"] if task["state"] == "pending"]
    if len(tasks) != len(job["tasks"]):
        raise Untranslated("some of its pods run already")
    levels_of = {one["name"]: one["levels"] for one in facts["topologies"]}
    groups = list(_kai_groups(job["groups"], tasks))
    need, wanted = _one_need(tasks), {task.get("affinity") for task in tasks}
    nodes = [node for node in facts["nodes"] if wanted <= {None, node.get("affinity")}]
    if root := job["groups"].get("required"):
        nodes = [node for node in nodes if root in node["at"]]
    room = {node["name"]: _taken(_left(node), need) for node in nodes}
    asked = {level for group in groups for level in (group.within, group.prefer)}
    domains = {
        level: {node["name"]: _path(node["at"], levels[: levels.index(level) + 1]) for node in nodes}
        for levels in levels_of.values()
        for level in reversed(levels)
        if level in asked
    }
    wishes = oracle.get("preferred_groups_in_one_domain_best", 0)
    return Case(facts["id"], room, domains, len(tasks), groups, oracle["feasible_all_tasks"], wishes)


def _kai_groups(tree: Facts, tasks: Sequence[Facts]) -> Iterator[tp.Group]:
    names = set(_names(tree))
    own = tuple(i for i, task in enumerate(tasks) if tree["name"] == "root" or task.get("group") in names)
    for required, preferred in ((tree.get("required"), None), (None, tree.get("preferred"))):
        if own and (required or preferred):
            yield tp.Group(own, required, preferred)
    for inner in tree.get("groups", ()):
        yield from _kai_groups(inner, tasks)


def _names(tree: Facts) -> Iterator[str]:
    yield tree["name"]
    for inner in tree.get("groups", ()):
        yield from _names(inner)


# ---- Volcano -------------------------------------------------------------------------------------------------


def _volcano(facts: Facts) -> list[Case]:
    oracle = facts["oracle"][0]
    job = next(job for job in facts["jobs"] if job["name"] == oracle["job"])
    if oracle.get("all_placeable") is None:
        raise Untranslated("its levels are wrong, no search says whether it fits")
    pending = [pod for pod in job["pods"] if pod["state"] == "pending"]
    running = [pod for pod in job["pods"] if pod["state"] == "running"]
    need = {"pods": 1, **_one_need(pending)}
    tiers = _tiers(facts)
    groups: list[tp.Group] = []
    nodes = {node["name"]: node for node in facts["nodes"]}
    for wanted, runs, tier in _bounds(facts, job, pending, running):
        if tier in tiers:
            groups.append(tp.Group(tuple(wanted), f"tier {tier}"))
            if runs and len(wanted) < len(pending):
                raise Untranslated("some of its pods run already, in several sub-groups")
            homes = {tiers[tier].get(pod["node"]) for pod in runs}
            nodes = {
                name: node
                for name, node in nodes.items()
                if name in tiers[tier] and homes <= {tiers[tier][name]}
            }
    used = {f"tier {tier}": {name: of.get(name) for name in nodes} for tier, of in sorted(tiers.items())}
    room = {name: _taken(_left(node), need) for name, node in nodes.items()}
    return [Case(facts["id"], room, used, len(pending), groups, oracle["all_placeable"])]


def _tiers(facts: Facts) -> dict[int, dict[str, str]]:
    """Return the domain of each node at each tier: the hypernode of the highest tier up to it that has the node."""
    nodes = sorted(facts.get("hypernodes", ()), key=lambda one: one["tier"])
    found: dict[int, dict[str, str]] = {}
    for tier in sorted({one["tier"] for one in nodes}):
        found[tier] = {name: one["name"] for one in nodes if one["tier"] <= tier for name in one["nodes"]}
    return found


def _bounds(
    facts: Facts, job: Facts, pending: Sequence[Facts], running: Sequence[Facts]
) -> Iterator[tuple[list[int], list[Facts], int]]:
    """Yield waiting pods that must be together, the running ones with which, and the tier."""
    if job.get("mode") == "hard":
        yield list(range(len(pending))), list(running), _tier(facts, job)
    for policy in job.get("subgroup_policies", ()):
        if policy.get("mode") != "hard":
            continue
        alike: dict[tuple[str | None, ...], list[int]] = {}
        for i, pod in enumerate(pending):
            alike.setdefault(_labels(pod, policy), []).append(i)
        for labels, pods in alike.items():
            if None not in labels:
                yield pods, [pod for pod in running if _labels(pod, policy) == labels], _tier(facts, policy)


def _labels(pod: Facts, policy: Facts) -> tuple[str | None, ...]:
    return tuple(pod["labels"].get(label) for label in policy["by_labels"])


def _tier(facts: Facts, stated: Facts) -> int:
    if name := stated.get("highest_tier_name"):
        return int(facts["tier_names"][name])
    return int(stated.get("highest_tier", math.inf))


# ---- Slurm ---------------------------------------------------------------------------------------------------


def _slurm(facts: Facts) -> list[Case]:
    kind = facts["kind"]
    if kind == "tree_switches" and facts["most_switches"] == 1:
        leaves = [switch for switch in facts["topology"]["switches"] if "nodes" in switch]
        of: dict[str, str | None] = {node: leaf["name"] for leaf in leaves for node in leaf["nodes"]}
        size = facts["nodes"]
        whole = [tp.Group(tuple(range(size)), "leaf")]
        room = dict.fromkeys(of, 1)
        return [Case(facts["id"], room, {"leaf": of}, size, whole, facts["oracle"]["feasible"])]
    if kind == "segment_count":
        return [_slurm_job(facts, facts, frozenset(), feasible=True)]
    if kind != "block_jobs":
        raise Untranslated(f"{kind}: asks for no groups or levels")
    return _slurm_jobs(facts)


def _slurm_jobs(facts: Facts) -> list[Case]:
    """Return a case for each job; those before it have the first nodes in which they fit, if a search says they do."""
    found: list[Case] = []
    used: frozenset[str] = frozenset()
    for number, (job, oracle) in enumerate(zip(facts["jobs"], facts["oracle"], strict=True)):
        every = oracle.get("feasible_after_every_choice", oracle.get("feasible"))
        if every != oracle.get("feasible_after_some_choice", every):
            raise Untranslated("whether it fits depends on choices before it")
        case = _slurm_job(facts, job, used, feasible=bool(every))
        found.append(replace(case, name=f"{facts['id']}/{number}"))
        if every:
            used |= frozenset([name for name in case.room if case.room[name]][: job["nodes"]])
            if number + 1 < len(facts["jobs"]) and job["nodes"] > 1:
                raise Untranslated("several jobs of several nodes in order")
    return found


def _slurm_job(facts: Facts, job: Facts, used: frozenset[str], *, feasible: bool) -> Case:
    """Return a job of whole nodes, in the smallest aggregate of blocks with as many, its segments in blocks."""
    blocks, sizes = facts["topology"]["blocks"], facts["topology"]["block_sizes"]
    listed = set(job.get("nodelist") or [name for block in blocks for name in block["nodes"]])
    room = {name: int(name in listed - used) for block in blocks for name in block["nodes"]}
    domains: dict[str, dict[str, str | None]] = {}
    for size in sizes:
        each = size // sizes[0]
        domains[f"blocks of {size}"] = {
            name: f"{size}/{i // each}" for i, block in enumerate(blocks) for name in block["nodes"]
        }
    count = job["nodes"]
    groups = [tp.Group(tuple(range(count)), f"blocks of {min(size for size in sizes if size >= count)}")]
    segment = job.get("segment") or count
    if segment <= sizes[0]:
        firsts = range(0, count, segment)
        parts = [tuple(range(first, min(first + segment, count))) for first in firsts]
        groups += [tp.Group(part, f"blocks of {sizes[0]}") for part in parts]
    return Case(facts["id"], room, domains, count, groups, feasible)


# ---- what the originals answered -----------------------------------------------------------------------------


@dataclass
class Answer:
    """A case, and what the scheduler itself answered."""

    case: Case
    policy: str
    """The policy that has the scheduler's rule."""
    fits: bool
    """False if the job is refused or has to wait."""
    places: Counter[str] | None = None
    """How many tasks each machine gets, where that is stated."""
    of_task: dict[int, str] = field(default_factory=dict)
    """The machines of the tasks for which they are stated."""


_KUEUE = {
    "BestFit": "kueue-best-fit",
    "LeastFreeCapacity": "kueue-least-free",
    "Balanced": "kueue-balanced",
}


def kueue_answers(folder: Path) -> tuple[list[Answer], dict[str, str]]:
    """Return what Kueue answered to requests for new jobs, and why others of them cannot be asked here."""
    found: list[Answer] = []
    others: dict[str, str] = {}
    for facts in json.loads((folder / "kueue.json").read_text("utf-8"))["cases"]:
        for number, answer in enumerate(facts["expected"] if facts["kind"] == "place" else ()):
            name = f"{facts['id']}/{number}"
            try:
                found.append(_kueue_answer(facts, number, answer))
                found[-1].case.name = name
            except Untranslated as why:
                others[name] = str(why)
    return found, others


def _kueue_answer(facts: Facts, number: int, answer: Facts) -> Answer:
    asked = facts["requests"][number]
    if "assignment" not in answer and "refused" not in answer:
        raise Untranslated("no answer is stated")
    if asked.get("leader") and asked.get("slices"):
        raise Untranslated("a leader pod, which is in no slice")
    case = _kueue_request(facts, number)
    order = sorted((name for name, room in case.room.items() if room > 0), key=lambda name: name.split("/"))
    case.room = {name: case.room[name] for name in order}  # Kueue breaks ties by the names of the levels
    places: Counter[str] | None = Counter() if "assignment" in answer else None
    if places is not None:
        for part in (*answer["assignment"], *answer.get("leader_assignment", ())):
            values = [part["at"].get(level) for level in facts["levels"]]
            (name,) = (
                name
                for name in order
                if all(value in (None, own) for value, own in zip(values, name.split("/"), strict=True))
            )
            places[name] += part["pods"]
    return Answer(case, _KUEUE[asked["algorithm"]], places is not None, places)


def volcano_answers(folder: Path) -> tuple[list[Answer], dict[str, str]]:
    """Return what Volcano did with jobs, and why others of them cannot be asked here."""
    found: list[Answer] = []
    others: dict[str, str] = {}
    for facts in json.loads((folder / "volcano.json").read_text("utf-8"))["cases"]:
        try:
            (case,) = _volcano(facts)
            job = next(job for job in facts["jobs"] if job["name"] == facts["oracle"][0]["job"])
            waiting = [pod["name"] for pod in job["pods"] if pod["state"] == "pending"]
            bound = facts["expected"]["bound"]
            if bound not in (0, len(waiting)):
                raise Untranslated("starts with fewer pods")
            if job.get("mode") == "soft" and all(len(group.tasks) < case.size for group in case.groups):
                case.groups.append(tp.Group(tuple(range(case.size)), prefer=next(iter(case.domains))))
            binds = facts["expected"].get("bind_map", {})
            of_task = {waiting.index(pod): node for pod, node in binds.items()}
            found.append(Answer(case, "volcano-binpack", bound > 0, of_task=of_task))
        except Untranslated as why:
            others[facts["id"]] = str(why)
    return found, others


def slurm_answers(folder: Path) -> tuple[list[Answer], dict[str, str]]:
    """Return whether Slurm runs jobs, each after those before it, and why others of them cannot be asked here."""
    found: list[Answer] = []
    others: dict[str, str] = {}
    for facts in json.loads((folder / "slurm.json").read_text("utf-8"))["cases"]:
        kind, name = facts["kind"], facts["id"]
        if kind == "tree_switches":
            leaves = [switch for switch in facts["topology"]["switches"] if "nodes" in switch]
            of: dict[str, str | None] = {node: leaf["name"] for leaf in leaves for node in leaf["nodes"]}
            size, one = facts["nodes"], facts["most_switches"] == 1
            groups = [tp.Group(tuple(range(size)), "leaf")] if one else []
            case = Case(name, dict.fromkeys(of, 1), {"leaf": of}, size, groups, facts["oracle"]["feasible"])
            found.append(Answer(case, "slurm-tree", facts["expect"] == "runs"))
        elif kind in ("block_jobs", "segment_count", "rank_order"):
            found += _slurm_blocks(facts)
        else:
            others[name] = f"{kind}: asks for no placement on blocks or switches"
    return found, others


def _slurm_blocks(facts: Facts) -> Iterator[Answer]:
    """Yield the jobs of a case; the machines of those before, by the rule of `slurm-block`, are taken."""
    used: frozenset[str] = frozenset()
    for job in facts.get("jobs", (facts,)):
        case = _slurm_job(facts, job, used, feasible=job["expect"] not in ("waits", "rejected"))
        case.groups = case.groups[1:] if job.get("segment", job["nodes"]) < job["nodes"] else []
        order = facts["expect"].get("order", ()) if facts["kind"] == "rank_order" else ()
        yield Answer(case, "slurm-block", case.feasible, of_task=dict(enumerate(order)))
        if case.feasible and (cluster := case.cluster()):
            placement = tp.policies.get("slurm-block").place(case.job(), cluster)
            topology = cluster.topology
            gpus = placement.gpus if placement else ()
            used |= {topology.machine_names[topology.machine_of[gpu]] for gpu in gpus}


_READERS: Mapping[str, Callable[[Facts], list[Case]]] = {
    "kueue": _kueue,
    "kai": _kai,
    "volcano": _volcano,
    "slurm": _slurm,
}
FILES = tuple(_READERS)
