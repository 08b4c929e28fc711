"""A snapshot of a Slurm cluster, from the output of `scontrol show node` and `scontrol show job`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from topoplace import _checks
from topoplace.discovery.in_use import GpuUse
from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.host_list import expanded
from topoplace.errors import JobGraphError, SnapshotError, TopologyError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.snapshot.records import RunningJob, Scheduler, Snapshot, WaitingJob, on_each_machine
from topoplace.topology.topology import Topology
from topoplace_hosts.gathered import MOST_GPUS, MOST_JOBS, Gathered, idle, lowest_free, moment, with_models_of
from topoplace_hosts.requested_job import RequestedJob
from topoplace_hosts.slurm import gres, request, task_places
from topoplace_hosts.slurm.own_nodes import OwnNodes
from topoplace_hosts.slurm.snapshot import jobs as slurm_jobs
from topoplace_hosts.slurm.snapshot.jobs import JobRecord
from topoplace_hosts.slurm.snapshot.nodes import GpuKinds, NodeChoice, NodeFacts, of_json, of_text
from topoplace_hosts.slurm.texts import nodes as slurm_nodes

_GPUS = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?:[:/][A-Za-z_][\w.+-]*)?(?:[:=]([0-9]{1,19}))?(?=,|$)")
_TASKS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?(?::([0-9]{1,6}))?")
_HELD = re.compile(
    r"JobHeld|JobHoldMaxRequeue|.*_held$|Dependency|BeginTime|QOS|Assoc|Max|InvalidQOS|InvalidAccount|AccountNotAllowed|Licenses|Reservation|"
    r"Partition|JobArrayTaskLimit|BadConstraints|DeadLine|Cleaning|launch_failed"
)
"""The start of reasons that remain even if GPUs become free: squeue(1), section JOB REASON CODES."""
_SLURM = Scheduler(
    "Slurm",
    "Slurm moves no job: `scontrol requeue` stops it, and it starts again where Slurm decides",
    OwnNodes,
)
_OF_GPUS = re.compile(r"gpu|shard|mps")
_SUSPENDED = "SUSPENDED"
_REQUESTS = ("TresPerNode", "TresPerJob", "TresPerTask", "TresPerSocket", "ReqTRES", "TRES")


@dataclass(slots=True)
class SlurmTexts:
    """The texts of Slurm in the sources."""

    nodes: list[str] = field(default_factory=list[str])
    """Texts with nodes; a text in JSON is the only one."""
    facts: dict[str, NodeFacts] = field(default_factory=dict[str, NodeFacts])
    jobs: list[JobRecord] = field(default_factory=list[JobRecord])

    @property
    def remedy(self) -> str:
        """Return the commands of Slurm that print what is needed."""
        return "`scontrol show node -d` and `scontrol show job -d`"

    def add(self, text: str) -> bool:
        """Add output of `scontrol`, as text or with `--json`; return False for another text."""
        if text.startswith("{"):
            return self._add_json(text)
        if not re.search(r"^[ \t]*(?:JobId|NodeName)=", text, re.MULTILINE):
            return False
        self.jobs += slurm_jobs.of_text(text)
        others = slurm_jobs.RECORD.sub(
            lambda job: "\n" * (job[0].count("\n") or 1), text
        )  # lines keep their numbers
        if slurm_nodes.recognised(others):
            self.nodes.append(others)
            self._add_facts(dict(of_text(others)))
        return True

    def _add_json(self, text: str) -> bool:
        document = yaml_tree.fields(next(yaml_tree.documents(text, "snapshot")), "snapshot")
        if "jobs" not in document and "nodes" not in document:
            return False
        self.jobs += slurm_jobs.of_json(document)
        if document.get("nodes"):
            self.nodes.append(text)
            self._add_facts(dict(of_json(document)))
        return True

    def _add_facts(self, facts: dict[str, NodeFacts]) -> None:
        for name in facts.keys() & self.facts.keys():
            raise SnapshotError(f"node {_checks.shown(name)} appears twice")
        self.facts |= facts

    def about(self) -> Iterator[str]:
        """Yield the start of messages about each job and node, such as "job 12"."""
        yield from (job.where for job in self.jobs)
        yield from (f"node {name}" for name in self.facts)

    @property
    def is_empty(self) -> bool:
        """Return True if there is neither a node nor a job."""
        return not self.nodes and not self.jobs

    def snapshot(self, topology: Topology | None) -> Snapshot:
        """Return the snapshot; topology: the cluster, or one node; None takes it from the nodes' Gres."""
        if not self.nodes:
            raise SnapshotError("there are jobs and no nodes; add what `scontrol show node -d` prints")
        if len(self.jobs) > MOST_JOBS:
            raise SnapshotError(f"more than {MOST_JOBS} jobs")
        found = idle(lambda template: _nodes(self, template), topology)
        found.scheduler = _SLURM
        choice = NodeChoice(self.facts)
        for job in self.jobs:
            if job.runs:
                _add_running(found, job, choice)
        _hold_others(found, self)
        kinds = GpuKinds(found.cluster.topology, lambda: _nodes(self, None))
        alone = {job.job_id for job in self.jobs}
        for job in self.jobs:
            if job.waits and not job.runs:
                _add_waiting(found, job, choice, kinds, alone)
        found.notes += _left_out(self.jobs)
        found.notes += _without_gpus(self.jobs, found.cluster.topology)
        return found.finished()


# ---- nodes -----------------------------------------------------------------------------------------------------


def _nodes(texts: SlurmTexts, template: Topology | None) -> Topology:
    """Return the nodes as the texts describe them; template: the topology of each."""
    if len(texts.nodes) > 1 and any(text.lstrip().startswith("{") for text in texts.nodes):
        raise SnapshotError("the nodes appear twice: give `scontrol show node -d` once, in text or in JSON")
    try:
        found = slurm_nodes.parse("\n\n".join(texts.nodes), template=template)
    except TopologyError:
        for text in texts.nodes:  # the line of an error is that of its own text
            slurm_nodes.parse(text, template=template)
        raise
    # Jobs' GPUs are free in a topology; a snapshot has the jobs.
    return replace(found, notes=tuple(note for note in found.notes if "that jobs hold" not in note))


def _hold_others(found: Gathered, texts: SlurmTexts) -> None:
    """Hold the GPUs that nodes show in use and no job of the text has."""
    numbers = found.cluster.topology.gpus_of
    held: set[int] = set()
    for use in _in_use(found, texts):
        gpus = numbers.get(use.machine or "", ())
        if use.taken and use.number is not None and use.number < len(gpus):
            held.add(gpus[use.number])
    held = {gpu for gpu in held if not found.cluster.shares_of(gpu)}
    if held:
        found.cluster.hold(sorted(held), reason="in use, by no job of the text")
        found.notes.append(
            f"{len(held)} GPUs are in use by no job of the text, such as by shares, and stay so for ever."
        )


def _in_use(found: Gathered, texts: SlurmTexts) -> Sequence[GpuUse]:
    try:
        return slurm_nodes.in_use("\n\n".join(texts.nodes))
    except TopologyError:  # not which GPUs are in use: then the jobs alone tell
        found.notes.append("Only jobs say which GPUs are in use; `scontrol show node -d` says it of nodes.")
        return ()


# ---- running jobs ----------------------------------------------------------------------------------------------


def _add_running(found: Gathered, job: JobRecord, choice: NodeChoice) -> None:
    is_told = all(slurm_nodes.gpus_of(devices) for _, devices in job.gres if "gpu" in devices)
    gpus = list(_told(found, job)) if is_told else []
    if not gpus:
        gpus = list(_assumed(found, job))
        if gpus:
            found.assumed.append(f"job {job.job_id}")
    if gpus:
        found.name(job.get("JobId"), job.job_id)
        nodes = on_each_machine(gpus, found.cluster.topology)
        gpus = [gpu for own in nodes.values() for gpu in own]
        graph = with_models_of(_kept(job, [len(own) for own in nodes.values()]), gpus, found.cluster.topology)
        stays = _why_it_stays(job, choice)
        running = RunningJob(job.job_id, tuple(gpus), job.seconds_left, graph, choice.of(job), stays)
        found.runs(running, job.where)
    if _SUSPENDED in job.states:
        found.notes.append(f"{job.where} is suspended, and taken to keep its GPUs.")


def _kept(job: JobRecord, sizes: Sequence[int]) -> JobGraph:
    """Return a running job on as many nodes as it has now. sizes: its GPUs on each of them.

    What a request of topoplace asks for besides is kept if it is about as many GPUs of as many nodes.
    """
    try:
        asked = _graph(job) if _asked(job, len(sizes)) == sum(sizes) else None
    except JobGraphError:
        asked = None
    if asked is None or asked.num_tasks != sum(sizes) or _sizes(asked) not in ((), tuple(sizes)):
        asked = RequestedJob(sensitive=True).on_gpus(sum(sizes))
    if len(sizes) == 1:
        return asked.with_(single_machine=True)
    if _sizes(asked):
        return asked
    return asked.with_(single_machine=False, max_machines=None, same_gpus=False).grouped(
        sizes, within=MACHINE
    )


def _sizes(job: JobGraph) -> tuple[int, ...]:
    """Return the numbers of GPUs of a job's nodes; () if its groups do not say them."""
    return tuple(len(group.tasks) for group in job.groups if group.within == MACHINE)


def _why_it_stays(job: JobRecord, choice: NodeChoice) -> str:
    """Return why `scontrol requeue` cannot start a job elsewhere; "" if it can."""
    if job.get("Requeue") == "0" or job.get("BatchFlag") == "0":
        return "may not be requeued" if job.get("Requeue") == "0" else "is no batch job"
    if "HetJobId" in job.values:
        return "is a part of a heterogeneous job"
    if "RUNNING" not in job.states:
        return "is " + ", ".join(job.states).lower()
    return next(choice.left_out(job), "")


def _told(found: Gathered, job: JobRecord) -> Iterator[int]:
    """Yield the GPUs that the text says a job has."""
    topology = found.cluster.topology
    for names, devices in job.gres:
        numbers = slurm_nodes.gpus_of(devices)
        for name in expanded(names, f"{job.where}: Nodes") if numbers else ():
            gpus = topology.gpus_of.get(name)
            if gpus is None or numbers[-1] >= len(gpus):
                has = "is not in the topology" if gpus is None else f"has {len(gpus)} GPUs"
                raise SnapshotError(
                    f"{job.where} fits nowhere: it has GPU {numbers[-1]} of {_checks.shown(name)}, which {has}"
                )
            yield from (gpus[number] for number in numbers)


def _assumed(found: Gathered, job: JobRecord) -> Iterator[int]:
    """Yield the lowest free GPUs of the nodes of a job, as many on each as it asks for."""
    names = expanded(job.get("NodeList"), f"{job.where}: NodeList") if job.get("NodeList") else []
    total = _gpus_in(job.get("AllocTRES") or job.get("TRES")) or _asked(job, len(names) or 1)
    if not total:
        return
    if not names:
        found.notes.append(f"{job.where} runs on nodes that the text does not name, and is left out.")
        return
    each, rest = divmod(total, len(names))
    for i, name in enumerate(names):
        yield from lowest_free(found.cluster, name, each + (i < rest), job.where)


# ---- waiting jobs ----------------------------------------------------------------------------------------------


def _add_waiting(
    found: Gathered, job: JobRecord, choice: NodeChoice, kinds: GpuKinds, alone: Collection[str]
) -> None:
    """Add the tasks of a job. alone: the ids of all records; a task that has its own is not added by its array."""
    machines = choice.of(job)
    if (total := _asked(job, max(1, job.number("NumNodes")))) > MOST_GPUS:
        found.notes.append(f"{job.where} asks for {total} GPUs, more than {MOST_GPUS}, and is left out.")
        return
    try:
        graph = _of_kinds(_graph(job), choice.kinds_asked(job, machines), machines, kinds)
    except JobGraphError as error:
        raise SnapshotError(f"{job.where}: {error}") from None
    if graph is None:
        if asked := [value for value in map(job.get, _REQUESTS) if "gpu" in value]:
            found.notes.append(
                f"{job.where} asks for {_checks.shown(asked[0])}, which is not read; it is left out."
            )
        return
    found.notes += [f"{job.where}: {what}." for what in choice.left_out(job)]
    submitted = moment(job.get("SubmitTime"))
    limit = slurm_jobs.seconds(job.get("TimeLimit"), job.where)
    for job_id in _ids(found, job):
        if job_id in alone and job_id != job.job_id:
            continue
        found.name(job.get("JobId"), job_id)
        found.waits(
            WaitingJob(
                job_id,
                graph,
                submitted,
                job.number("Priority"),
                limit,
                machines,
                _why_held(job),
            ),
            job.where,
        )


def _why_held(job: JobRecord) -> str:
    """Return why a job may not start even if GPUs are free; "" if it may, or waits for topoplace's placer alone."""
    reason = job.get("Reason") or ("Priority=0" if job.get("Priority") == "0" else "")
    ours = request.is_marked(job.get("AdminComment")) and reason == "JobHeldUser"
    is_held = job.get("Priority") == "0" or _HELD.match(reason) is not None
    return reason if is_held and not ours else ""


def _graph(job: JobRecord) -> JobGraph | None:
    """Return the job for a policy; None if it asks for no GPU."""
    nodes = max(1, job.number("NumNodes"))
    mark, _ = task_places.split(job.get("AdminComment"))
    if request.is_marked(mark):
        return request.parsed(mark, job.get("Comment"), nodes, job.number("SegmentSize")).job_graph()
    if each := _of_each_node(job):
        graph = RequestedJob(sensitive=True).on_gpus(each * nodes)
        return graph.with_(single_machine=True) if nodes == 1 else graph.grouped(each, within=MACHINE)
    total = _asked(job, nodes)
    return RequestedJob(sensitive=True).on_gpus(total) if total else None


def _of_kinds(
    graph: JobGraph | None, asked: Collection[str], machines: frozenset[str] | None, kinds: GpuKinds
) -> JobGraph | None:
    """Return the job on GPUs of the kind that it asks for; None if that cannot be said of its GPUs."""
    if graph is None or not asked or graph.gpu_model is not None:
        return graph
    models = kinds.models(next(iter(asked)), machines) if len(asked) == 1 else ()
    return graph.with_(gpu_model=models) if models else None


def _asked(job: JobRecord, nodes: int) -> int:
    """Return how many GPUs a job asks for on all its nodes; 0 for none."""
    if each := _of_each_node(job):
        return each * nodes
    of_task = _gpus_in(job.get("TresPerTask")) * max(1, job.number("NumTasks"))
    return (
        _gpus_in(job.get("TresPerJob"))
        or of_task
        or _gpus_in(job.get("ReqTRES"))
        or _gpus_in(job.get("TRES"))
    )


def _of_each_node(job: JobRecord) -> int:
    """Return how many GPUs a job asks for on each node; 0 if it does not say it so."""
    return _gpus_in(job.get("TresPerNode")) or _devices_in(job.get("TresPerNode"))


def _gpus_in(tres: str) -> int:
    """Return the number of GPUs in a request such as gres/gpu:a100:4 or cpu=8,gres/gpu=4,gres/gpu:a100=4."""
    counts = [int(count or 1) for count in _GPUS.findall(tres)]
    return counts[0] if "=" in tres and counts else sum(counts)


def _devices_in(tres: str) -> int:
    """Return the number of GPUs in a request for exact devices, such as gres:gpu:g0:1,gres:gpu:g3:1."""
    return len(gres.numbers_in(tres) or ())


def _ids(found: Gathered, job: JobRecord) -> Iterator[str]:
    """Yield the id of each task of an array that waits, or of the job."""
    array, _, tasks = job.job_id.partition("_")
    if not tasks or tasks.isdigit():
        yield job.job_id
        return
    listed, _, at_once = tasks.strip("[]").partition("%")
    if at_once:
        found.notes.append(f"{job.where}: that at most {at_once} of its tasks run at once is left out.")
    for part in listed.split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            found.notes.append(
                f"{job.where}: more tasks than the text lists, {_checks.shown(part)}, are left out."
            )
            continue
        last = int(match[2] or match[1])
        yield from (f"{array}_{task}" for task in range(int(match[1]), last + 1, max(1, int(match[3] or 1))))


def _left_out(jobs: Sequence[JobRecord]) -> Iterator[str]:
    """Yield notes on jobs that are in no other note, and have a part that is left out."""
    if parts := [job.job_id for job in jobs if "+" in job.job_id]:
        yield f"Parts of heterogeneous jobs, each taken as a job of its own: {_checks.some(parts)}."
    shares = [job.job_id for job in jobs if re.search(r"shard|mps", job.get("TresPerNode"))]
    if shares:
        yield f"Jobs that ask for shares of GPUs, which are left out: {_checks.some(shares)}."
    if unknown := [job.job_id for job in jobs if not job.is_known]:
        yield f"Jobs in a state that is not known, which are left out: {_checks.some(unknown)}."


def _without_gpus(jobs: Sequence[JobRecord], topology: Topology) -> Iterator[str]:
    """Yield notes on jobs without GPUs, which are left out: of the nodes, a snapshot has the GPUs."""
    plain = [job for job in jobs if not _has_gpus(job)]
    nodes_of = {job.job_id: _gpu_nodes(job, topology) for job in plain if job.runs}
    if beside := [job_id for job_id, nodes in nodes_of.items() if nodes]:
        nodes = sorted(set[str]().union(*nodes_of.values()))
        yield (
            f"Jobs without GPUs that run on nodes with GPUs: {_checks.some(beside)} on {_checks.some(nodes)}. "
            "The CPUs and memory that they hold there are not counted."
        )
    if waiting := [job.job_id for job in plain if job.waits and not job.runs]:
        yield f"Jobs without GPUs that wait, which are left out: {_checks.some(waiting)}."


def _has_gpus(job: JobRecord) -> bool:
    """Return True if a job has or asks for GPUs, or shares of them."""
    amounts = (*map(job.get, (*_REQUESTS, "AllocTRES")), *(devices for _, devices in job.gres))
    return any(map(_OF_GPUS.search, amounts)) or request.is_marked(job.get("AdminComment"))


def _gpu_nodes(job: JobRecord, topology: Topology) -> set[str]:
    nodes = expanded(job.get("NodeList"), f"{job.where}: NodeList") if job.get("NodeList") else []
    return {name for name in nodes if name in topology.gpus_of}
