"""`topoplace place` chooses GPUs for one job, and prints the best choices and the environment to start the job."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import (
    flags,
    gpu_list,
    headline,
    job_options,
    launch_files,
    options,
    ranks,
    reading,
    snapshots,
    writing,
)

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Explanation
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.yardsticks import Yardsticks
    from topoplace.topology.topology import Topology

_NOT_PLACED = 1
_ALWAYS_NOTED = (
    "no job can",
    "hides NVLinks",
    "uncorrectable ECC errors",
    "slows it down",
    "state is not given",
)
"""Words in notes of a topology that a job's owner must also see."""
_RING = "ring: what the library's rings carry"
_NVLS = "NVLS: what the job's all-reduce carries in NVSwitches, faster than rings"
_TIME = "time: of the job's communication in a step, or for edges of weight 1"
_SCORES = {
    "aggregated": "sum of the job's links",
    "effective": "predicted all-reduce",
    "bottleneck": "the job's slowest link",
    "preserved": "sum of the links among the GPUs left free, inside all machines",
}
"""Scores that are shown if a candidate has them, and their descriptions."""


def add(commands: Any) -> None:
    """Add `topoplace place` and its arguments to the command line."""
    parser = options.command(
        commands,
        "place",
        "choose GPUs for one job and say why",
        _run,
        examples=[
            "topoplace place dgx1-v100 --pattern ring --gpus 4 --sensitive --busy 0,5",
            "topoplace place topo.txt --gpus 3 --policy topo-aware --json",
            "topoplace place --from scontrol.txt --gpus 6",
            "topoplace place cluster.json --gpus 16 --within rack --max-machines 2",
            "topoplace place cluster.json --parallel tensor=8,data=2 --group tensor@machine --launch torchrun -o start",
        ],
        negative="the job is not placed",
    )
    options.add_topology(parser, without="with --from, by default the nodes that FILE describes")
    snapshots.add_from(parser)
    job_options.add_job(parser)
    options.add_policy(parser)
    parser.add_argument(
        "--busy",
        metavar="IDS",
        help="GPUs in use, such as 0-3,6; on one machine, the device numbers that are printed",
    )
    parser.add_argument(
        "--busy-from",
        metavar="FILE",
        help="GPUs in use, from the output of a tool: nvidia-smi, scontrol show node -d, sinfo, squeue --json",
    )
    parser.add_argument(
        "--slice",
        action="append",
        default=[],
        metavar="ID=PROFILE[,PROFILE]",
        help="a GPU that is cut into MIG slices, such as 0=3g.40gb,2g.20gb; repeat it for others",
    )
    options.add_reslice(parser)
    options.add_count(parser, "--top", 3, "number of candidates to show")
    options.add_json(parser)
    options.add_output(parser)
    parser.add_argument(
        "--launch",
        choices=("torchrun", "mpirun", "srun", "hostfile", "rankfile", "jobset"),
        help="write the files for this launcher into the directory -o, instead of a picture, and print the command "
        "that starts the job",
    )


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.drawing import topology_text
    from topoplace.policies.yardsticks import yardsticks

    cluster = _cluster(arguments)
    job = job_options.job(arguments)
    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    if arguments.reslice:
        policy = options.reslicing(policy)
    folder = launch_files.folder(arguments)
    pictures = arguments.output if folder is None else None
    picture = writing.topology_picture(pictures, "placement.png")
    with policies.installed.faults_named(policy, f"--policy = {arguments.policy!r}: "):
        with Progress("searching"):
            explained = policy.explain(job, cluster, top=arguments.top)
        if policies.installed.is_of_others(policy):
            _check(explained, job, cluster, policy)
    placed = None if explained.refusal else explained.candidates[0]
    busy = sorted(set(range(cluster.topology.num_gpus)).difference(cluster.free_gpus()))
    measured = yardsticks(placed, job, cluster) if placed else None
    if arguments.json:
        beside = {"yardsticks": measured.to_dict() if measured else None}
        writing.as_json(explained.to_dict(cluster.topology) | beside)
    else:
        _print_headline(placed, measured, cluster)
        topology_text.draw(cluster.topology, busy=busy, chosen=placed.gpus if placed else ())
        is_told = any((arguments.busy, arguments.busy_from, arguments.files))
        _print_notes(cluster.topology, is_use_told=is_told)
        _print(job, cluster, explained, placed)
    if picture and placed:
        from topoplace.drawing import topology_plot

        topology_plot.topology(cluster.topology, picture, busy=busy, chosen=placed.gpus, job=job)
        writing.wrote(picture, beside_json=arguments.json)
    if folder is not None and placed:
        launch_files.write(placed, folder, arguments)
    return 0 if placed else _NOT_PLACED


# ---- reading -----------------------------------------------------------------------------------------------------


def _cluster(arguments: argparse.Namespace) -> Cluster:
    """Return the cluster with its running jobs, the GPUs in use, and with those cut that --slice names."""
    from topoplace.topology.device_numbers import in_words

    cluster = _given(arguments)
    topology = cluster.topology
    _cut(cluster, arguments.slice)
    taken = set(gpu_list.of_topology(arguments.busy, topology, "--busy"))
    if arguments.busy_from is not None:
        taken.update(reading.busy_gpus(arguments.busy_from, topology))
    if sliced := sorted(taken.intersection(cluster.sliced_gpus)):
        cut = in_words(sliced[:1], topology)
        raise ValueError(f"--busy: {cut} is cut by --slice; a job takes the whole of a busy GPU")
    taken.difference_update(cluster.out_of_service())  # no job gets these anyway
    if taken:
        cluster.allocate("busy", sorted(taken))
    return cluster


def _given(arguments: argparse.Namespace) -> Cluster:
    """Return the cluster of --from, or TOPO without jobs."""
    from topoplace.cluster.cluster import Cluster

    if arguments.files is None:
        if arguments.topology is None:
            raise ValueError("TOPO is missing: name a topology, or give the files of a cluster with --from")
        return Cluster(reading.topology(arguments))
    found = snapshots.read(arguments.files, arguments)
    snapshots.print_notes(found.notes)
    return found.cluster


def _cut(cluster: Cluster, slices: Sequence[str]) -> None:
    from topoplace.topology.device_numbers import in_words

    for text in slices:
        gpus, _, profiles = text.partition("=")
        with flags.named(slices="--slice", gpu="--slice"):
            if not gpus.strip():
                raise ValueError(f"--slice {text!r}: no GPU is named; write ID=PROFILE[,PROFILE]")
            named = gpu_list.of_topology(gpus, cluster.topology, "--slice")
            if known := sorted(set(named).intersection(cluster.sliced_gpus)):
                raise ValueError(f"--slice {text!r}: {in_words(known[:1], cluster.topology)} is named twice")
            for gpu in named:
                cluster.slice_gpu(gpu, [name.strip() for name in profiles.split(",")])


def _check(explained: Explanation, job: JobGraph, cluster: Cluster, policy: Policy) -> None:
    """Raise PolicyError for an answer of a policy of the user's own that cannot be used."""
    from topoplace.engine.plan import Explanation, check_answer
    from topoplace.errors import PolicyError
    from topoplace.placement import Placement
    from topoplace.testing.placements import check_placement

    check_answer(explained, Explanation, policy, "explain")
    if not explained.candidates and explained.refusal is None:
        raise PolicyError(f"policy {policy.name!r}: explain returned neither a candidate nor a refusal")
    for one in explained.candidates:
        check_answer(one, Placement, policy, "explain")
        try:
            check_placement(one, job, cluster, getattr(policy, "model", None))
        except AssertionError as error:
            raise PolicyError(f"policy {policy.name!r}: its placement {one.gpus} is wrong: {error}") from None


# ---- writing -----------------------------------------------------------------------------------------------------


def _print_headline(placed: Placement | None, measured: Yardsticks | None, cluster: Cluster) -> None:
    """Print what a placement wins, and an empty line; nothing if the job is not placed."""
    from topoplace.topology.device_numbers import in_words

    if placed:
        is_large, is_idle = ranks.is_large(placed), not cluster.allocations
        gpus = ranks.in_short(placed) if is_large else in_words(placed.gpus, placed.topology)
        print(*headline.lines(gpus, placed, measured, is_idle=is_idle), "", sep="\n")


def _print_notes(topology: Topology, *, is_use_told: bool) -> None:
    """Print what the text says of GPUs that are not as they look, and of those in use that --busy-from would take."""
    for note in topology.notes:
        is_of_use = "free here" in note and not is_use_told
        if is_of_use or any(words in note for words in _ALWAYS_NOTED):
            print(f"note: {note}")


def _print(job: JobGraph, cluster: Cluster, explained: Explanation, placed: Placement | None) -> None:
    from topoplace.topology.device_numbers import in_words

    if explained.candidates:
        where = f"{cluster.topology.name}, {cluster.num_free} free, {explained.policy}"
        _print_candidates(explained, cluster.topology, f"{job.name} of {job.num_tasks} on {where}")
    if assumed := ", ".join(kind.name for kind in cluster.topology.assumed):
        print(f"the speed of {assumed} links is assumed; say the model with --gpu-model MODEL")
    if not explained.complete:
        print("the search for more candidates ended at its limit; there may be better ones after the first")
    if explained.refusal:
        print(f"not placed: {flags.in_words_of(job_options.FLAGS, explained.refusal.reason)}")
        if job.gpu_model and not any(gpu.model for gpu in cluster.topology.gpus):
            print("no GPU's model is known; say which it is with --gpu-model MODEL")
    if placed and placed.slices:
        _print_slices(placed)
    elif placed:
        if placed.resliced:
            print(f"to be made whole first, without slices: {in_words(placed.resliced, placed.topology)}")
        if ranks.is_large(placed):
            ranks.show_machines(placed)
        ranks.show_spread(placed)
        ranks.show_preferred(placed)
        _print_environment(placed)


def _print_candidates(explained: Explanation, topology: Topology, title: str) -> None:
    """Print a table of the candidates, and what is to be known about it."""
    from topoplace.drawing import tables
    from topoplace.objectives.job_bandwidth import placed_bandwidth

    candidates = explained.candidates
    are_large = any(ranks.is_large(candidate) for candidate in candidates)
    scores = [name for name in _SCORES if any(_score(name, one) != "-" for one in candidates)]

    tables.show(
        (
            "GPUs" if are_large else "GPUs by task",
            *("ring GB/s", "time"),
            *(f"{score} GB/s" for score in scores),
            "proven",
        ),
        [
            (
                ranks.in_short(one) if are_large else _gpus(one),
                *_communication_cells(one),
                *(_score(name, one) for name in scores),
                headline.proof(one),
            )
            for one in candidates
        ],
        title,
    )
    for remark in _remarks(explained, scores):
        print(f"- {remark}")
    by_switches = [_NVLS] if any(placed_bandwidth(one).by_switches for one in candidates) else []
    print("; ".join((_RING, *by_switches, _TIME, *(f"{name}: {_SCORES[name]}" for name in scores))))


def _gpus(candidate: Placement) -> str:
    """Return the GPUs by task, without the word GPUs, which is in the head of their column."""
    from topoplace.topology.device_numbers import in_words

    named = in_words(candidate.gpus, candidate.topology)
    return named.removeprefix("GPUs ").removeprefix("GPU ").replace(", ", " ")


def _remarks(explained: Explanation, scores: Sequence[str]) -> Iterator[str]:
    """Yield why some candidates miss one of the `scores` shown, and what takes the longest on the first one."""
    from topoplace.objectives.effective_bandwidth import OUTSIDE_ITS_RANGE, is_outside_range

    candidates = explained.candidates
    if "effective" in scores and any(map(is_outside_range, candidates)):
        yield f"in effective: {OUTSIDE_ITS_RANGE}"
    if len(explained.candidates[0].gpus) == 1:
        yield "the job has one task, so nothing is communicated"
    job = candidates[0].job
    if job and not job.stated_collectives and {one.kind for one in job.collectives} == {"send"}:
        yield "the job's edges are sends at once, in one phase"
    if candidates and (slowest := candidates[0].slowest):
        yield f"slowest on the first: {slowest}"


def _print_slices(placed: Placement) -> None:
    """Print where the slices are; their UUIDs, and so the environment, are known once they are cut."""
    from topoplace.topology.device_numbers import in_words

    for gpu, one in zip(placed.gpus, placed.slices, strict=True):
        how = "to be cut" if gpu in placed.resliced else "is there"
        print(f"{in_words([gpu], placed.topology)}: {one.profile} in slot {one.start}, {how}")


def _print_environment(placed: Placement) -> None:
    from topoplace.launch import environment

    own: list[str] = []
    machines_with: dict[str, list[str]] = {}
    is_unknown = placed.remote or environment.slices_without_uuid(placed)
    variables = {} if is_unknown else placed.env()
    for name, value in variables.items():
        if not isinstance(value, dict):
            own.append(environment.assigned(name, value))
        elif value:
            text = " ".join(environment.assigned(key, text) for key, text in value.items())
            machines_with.setdefault(text, []).append(name)
    for text, machines in machines_with.items():
        print(f"{ranks.folded(machines, placed)}: {text}")
    if own:
        machine = placed.topology.gpus[placed.gpus[0]].machine
        where = f"{ranks.folded([machine], placed)}: " if placed.topology.num_machines > 1 else ""
        print(where + " ".join(own))
    if (why := environment.unset(placed)) is not None:
        print(f"note: {why}.")


def _communication_cells(placement: Placement) -> list[object]:
    """Return the bandwidth of a placement in GB/s, of rings unless it says NVLS, and its time, or "-"."""
    from topoplace.drawing import tables
    from topoplace.objectives.job_bandwidth import placed_bandwidth

    seconds, (gb_per_s, by_switches) = placement.time, placed_bandwidth(placement)
    carried = f"{gb_per_s:.3g} NVLS" if by_switches else gb_per_s or "-"
    return [carried, tables.duration(seconds) if 0 < seconds < math.inf else "-"]


def _score(name: str, placement: Placement) -> object:
    """Return a score in GB/s; "-" where the policy does not compute it, or where it says nothing."""
    from topoplace.objectives.effective_bandwidth import is_outside_range

    value = placement.scores.get(f"{name}_bandwidth", math.inf)
    says_nothing = math.isinf(value) or (name == "effective" and is_outside_range(placement))
    return "-" if says_nothing else value
