"""The common part of commands that simulate: options about jobs, and runs under equal conditions."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from topoplace.cli import flags, options, reading
from topoplace_lab.commands import job_files
from topoplace_lab.commands.job_files import listed

if TYPE_CHECKING:
    from topoplace.cluster.hosts import GivenHosts
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.topology.topology import Topology
    from topoplace_lab.commands.live_cluster import LiveCluster
    from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
    from topoplace_lab.simulate import Discipline, Failures, PerformanceModel, Recovery, Result, Workload
    from topoplace_lab.simulate.workloads.batch_systems.sacct import Recorded

_NONE_RAN = 1
_STEP: Final = "step"
_BY_COPIES: Final = (
    "run times are those of copies to GPUs of other machines (remote-copies), as the log says nothing of "
    "communication; --pattern, or --performance, takes another model"
)
_NOT_RECORDED = frozenset(
    (
        *("topology", "gpu_model", "assume", "assume_no_nvlink"),  # a result has the topology itself,
        *("policy", "policies", "num_jobs", "seed"),  # the policy, its jobs and the seed
        *("json", "output", "save"),
    )
)
"""Arguments that are not kept among the options of a result."""


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Add the options about the jobs, their run times and the machines' resources, and those for JSON and pictures."""
    parser.add_argument(
        "--jobs",
        metavar="FILE",
        help="read jobs from FILE, gzipped, zipped or plain: a trace (CSV with a header, openb, PAI, Helios, Acme, "
        "Philly's JSON), a log (Standard Workload Format, PBS accounting), MAPA's job lines or SC'17's manifests "
        "(default: the usual jobs: MAPA's mix, or training of today on clusters with NVSwitches)",
    )
    default = "300; on clusters with NVSwitches, 100 to 1,000, as many as ask for about six times the GPUs"
    options.add_count(parser, "--num-jobs", 300, "number of the usual jobs", default_text=default)
    parser.set_defaults(num_jobs=None)  # to tell whether it is given
    job_files.add_reading(parser)
    parser.add_argument(
        "--typical",
        metavar="FILE",
        help="read the typical jobs of policies such as fgd from FILE, in any format of --jobs (default: --jobs)",
    )
    options.add_hosts(parser)
    _add_queue(parser)
    _add_failures(parser)
    parser.add_argument(
        "--without",
        metavar="NAMES",
        help="ignore these requirements of jobs, separated by commas, such as min_utility,cpus",
    )
    parser.add_argument(
        "--load",
        type=float,
        metavar="X",
        help="stretch submission times so that jobs ask for a share X of all GPU time, "
        "where 1 is all of it; jobs that are submitted all at once get random times",
    )
    options.add_seed(parser, "the job mix, the run times, and whatever a log does not contain")
    parser.add_argument(
        "--performance",
        metavar="MODEL",
        help="model of run times: step, for steps that compute and communicate on shared ports; fixed; profile; "
        "remote-copies; mapa, for jobs on a DGX-1V; or MODULE:OBJECT, one of your own (default: step; profile with "
        "--profile, remote-copies for logs without --pattern)",
    )
    parser.add_argument(
        "--step",
        metavar="SECONDS,GB",
        help="computing time of each job's training step, and its GB for 1 in the job's graph, for --performance step",
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="use measured run times, also in SC'17's policies; see `topoplace profile`",
    )
    options.add_json(parser)
    options.add_output(parser)


def _add_queue(parser: argparse.ArgumentParser) -> None:
    """Add the options of queue disciplines and of moves."""
    parser.add_argument(
        "--order",
        choices=("submitted", "priority", "fair"),
        help="which job is next: the oldest job, the highest priority, or the group with the smallest dominant share "
        "(default: submitted)",
    )
    parser.add_argument(
        "--backfill",
        choices=("none", "easy", "conservative"),
        help="which jobs may overtake: none; easy: those that do not delay the first waiting job; conservative: those "
        "that delay no job before them (default: easy)",
    )
    parser.add_argument(
        "--queue",
        choices=("one", "own"),
        help="one: all policies have one queue, in order of submission with EASY backfilling, or as --order and "
        "--backfill say, so that only placements differ; own: each policy decides by its own rule who is next "
        "(default: one; own with --make-room)",
    )
    parser.add_argument(
        "--make-room",
        type=float,
        metavar="SECONDS",
        help="move running jobs if that makes room for the oldest waiting job; each move takes SECONDS",
    )
    options.add_reslice(parser)


def _add_failures(parser: argparse.ArgumentParser) -> None:
    """Add the options of parts that fail."""
    parser.add_argument(
        "--failures",
        choices=("llama3",),
        help="let parts fail as often as they did in Llama 3's training, drawn from --seed: their jobs stop, and go on "
        "from the last checkpoint; a machine is out of service for a day",
    )
    parser.add_argument(
        "--recovery",
        choices=("repair", "place-again", "queue"),
        help="how jobs go on after a failure: with other GPUs for the lost ones, so that few tasks move; where the "
        "policy would place them then; or from the queue (default: repair)",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=float,
        metavar="SECONDS",
        help="work between two checkpoints (default: 3600)",
    )
    parser.add_argument(
        "--spares",
        metavar="LEVEL=N",
        help="hold N idle machines of each domain of a level for repairs, such as rack=1",
    )
    parser.add_argument(
        "--lend-spares",
        action="store_true",
        help="let jobs of a priority below 0, as manifests can state it, run on spares until a repair needs these",
    )


def queue_of(arguments: argparse.Namespace) -> str:
    """Return "one" or "own", by --queue and the options of the queue."""
    if arguments.queue == "own" and (arguments.order or arguments.backfill):
        raise ValueError("--queue own: --order and --backfill replace the policies' own queues")
    return arguments.queue or ("one" if arguments.make_room is None else "own")


class Study:
    """The topology, jobs and run time model of one command, equal for all compared policies.

    progress: show a bar for simulations that take more than a second. queue: "one" for all policies, or their "own";
    None takes that of the arguments. live: the cluster and its jobs; None takes TOPO and --jobs.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        *,
        progress: bool = True,
        queue: str = "",
        live: LiveCluster | None = None,
    ) -> None:
        from topoplace_lab.simulate import MoveTimes, RemoteCopies

        self.live = live
        """The cluster on which jobs already run; None if the topology is idle at first."""
        self.topology, self.hosts = _machines(arguments, live)
        self.arguments = arguments
        self.queue = queue or queue_of(arguments)
        self.profile = reading.profile(arguments.profile) if arguments.profile else None
        unwanted = listed(arguments.without, "--without")
        workload = live.workload if live else _workload(arguments, self.profile, self.topology)
        with reading.errors_of("--without"):
            self.workload = workload.without(*unwanted)
        at_once = len(set(self.workload.submit_time.tolist())) == 1
        self.workload = _stretched(self.workload, arguments, self.topology)
        self.progress = progress and sys.stderr is not None and sys.stderr.isatty()
        self.is_log = any(self.workload.transfers)
        """True if the jobs come from the log of a batch system."""
        self.is_usual = not arguments.jobs and live is None
        """True if the jobs are the usual ones of the topology."""
        self.model = self._model(arguments.performance, arguments.step)
        estimated = self.is_log and isinstance(self.model, RemoteCopies)
        draws = estimated or ":" in (arguments.performance or "")  # a model of others may draw, too
        draws = draws or arguments.failures is not None
        self.seed_counts = self.is_usual or draws or (at_once and arguments.load is not None)
        """False if every seed gives the same: a file has all facts about the jobs, and nothing else is drawn."""
        self.typical = self._typical(arguments.typical)
        self.discipline = _discipline(arguments, self.workload, self.queue)
        self.failures, self.recovery = _failures(arguments)
        with flags.named(move_s="--make-room"):
            self.move_times = MoveTimes(arguments.make_room or 0.0)

    @cached_property
    def recorded(self) -> Recorded | None:
        """Return what Slurm did with the jobs of a dump of sacct; None for other jobs."""
        return None if self.live else job_files.recorded(self.arguments.jobs)

    @property
    def may_share(self) -> bool:
        """Return True if policies that fill clusters have a choice: several machines, or jobs with shares of GPUs."""
        return self.topology.num_machines > 1 or any(job.gpu_share < 1 for job in self.workload.jobs)

    def about_jobs(self) -> None:
        """Print a sentence about the usual jobs, or the assumptions about a file of jobs."""
        from topoplace_lab import usual_study

        if self.is_usual:
            print(usual_study.about(self.topology))
        job_files.print_assumed(self.workload)

    def exit_code(self, results: Sequence[Result]) -> int:
        """Return 1 if no job ran in any result, with an error on standard error; else 0, with remarks."""
        from topoplace_lab.simulate import RemoteCopies
        from topoplace_lab.simulate.metrics import none_ran

        if why := none_ran(results):
            print(options.one_line(f"topoplace: {why}"), file=sys.stderr)
            return _NONE_RAN
        if self.arguments.performance is None and isinstance(self.model, RemoteCopies):
            print(_BY_COPIES, file=sys.stderr)
        return 0

    def run_all(self, names: Sequence[str]) -> tuple[list[Result], dict[str, str]]:
        """Simulate the jobs under each policy; return the results, and the reasons of policies that cannot run them.

        ValueError with the first of these reasons if there is no result.
        """
        results: dict[str, Result] = {}
        set_aside: dict[str, str] = {}
        for name in names:
            result = self.attempt(name)
            if isinstance(result, str):
                set_aside[name] = result
            else:
                results[name] = result
        if not results:
            name, reason = next(iter(set_aside.items()))
            raise ValueError(f"{name}: {reason}")
        shown = Counter(result.policy for result in results.values())
        return [
            # Two classes of others may call themselves the same, but are not one policy.
            replace(result, policy=f"{result.policy} ({name})") if shown[result.policy] > 1 else result
            for name, result in results.items()
        ], set_aside

    def attempt(self, name: str, **given: Any) -> Result | str:
        """Simulate the jobs under the policy called `name`; return the reason if it cannot run them."""
        from topoplace_lab.simulate.metrics import refusal

        try:
            result = self._run(name, given)
        except ValueError as error:
            return str(error)
        return refusal(result) or result

    def run(self, name: str) -> Result:
        """Simulate the jobs under the policy called `name`, which comes from --policy."""
        return self._run(name, {}, f"--policy = {name!r}: ")

    def _run(self, name: str, given: Mapping[str, Any], faults_begin: str = "") -> Result:
        """Simulate the jobs under the policy called `name`, with the arguments `given` for its class.

        A policy of SC'17 also gets the performance profile, and one that knows typical jobs gets those of the file.
        faults_begin: begins the message about a fault of a policy of others.
        """
        from topoplace import policies
        from topoplace.moving import MakingRoom
        from topoplace_lab.simulate import simulate
        from topoplace_lab.simulate.performance import given_models

        policy = policies.get(name, **given)
        if self.profile and isinstance(policy, policies.UtilityPolicy):
            policy = policies.get(name, profile=self.profile, **given)
        if self.typical and isinstance(policy, policies.FragmentationGradientDescent):
            policy = policies.get(name, typical=self.typical, **given)
        chosen = policy
        if self.arguments.reslice:
            policy = options.reslicing(policy)
        if self.arguments.make_room is not None:
            if self.arguments.reslice:
                raise ValueError("--make-room: room is made without reslicing GPUs, which --reslice asks for")
            with flags.named(policy="--make-room"):
                policy = MakingRoom(policy)
        with (
            flags.named(**{"backfill": "--backfill", "spares: level": "--spares"}),
            policies.installed.faults_named(chosen, faults_begin),
            given_models.faults_named(self.model),
        ):
            result = simulate(
                self.live.cluster if self.live else self.topology,
                self.workload,
                policy,
                performance=self.model,
                seed=self.arguments.seed,
                progress=self.progress,
                hosts=self.hosts,
                discipline=self.discipline,
                move_times=self.move_times,
                seconds_left=self.live.seconds_left if self.live else None,
                failures=self.failures,
                recovery=self.recovery,
            )
        return replace(result, options=self._options(given))

    def _options(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return what was chosen on the command line, and the arguments `given` for the policy's class, as texts."""
        chosen = {
            name: value
            for name, value in vars(self.arguments).items()
            if name not in _NOT_RECORDED and isinstance(value, str | int | float) and value is not False
        }
        return {name.replace("_", "-"): str(value) for name, value in (chosen | dict(given)).items()}

    def _typical(self, source: str | None) -> TypicalJobs | None:
        """Return the typical jobs of the file `source`, by default of the file of jobs; None for the usual jobs."""
        from topoplace_lab.sharing.expected_fragmentation import TypicalJobs

        if source is None:
            return None if self.is_usual else TypicalJobs.of(self.workload.jobs)
        with flags.named(jobs="--typical"):
            return TypicalJobs.of(job_files.jobs_of(source, self.arguments, self.profile).jobs)

    def _model(self, name: str | None, step: str | None) -> PerformanceModel:
        from topoplace_lab.simulate import FixedTime, MapaSlowdown, ProfiledTime, RemoteCopies

        if name is None:
            name = self._usual_model(step)
        if step is not None and name != _STEP:
            raise ValueError(f"--step is for --performance {_STEP}, not {name}")
        if name == "profile" and self.profile is None:
            raise ValueError("--performance profile needs --profile FILE")
        made: dict[str, Callable[[], PerformanceModel]] = {
            _STEP: lambda: _step_time(step, self.topology if self.is_usual else None),
            "fixed": FixedTime,
            "mapa": MapaSlowdown,
            "remote-copies": RemoteCopies,
        }
        if self.profile:
            made["profile"] = partial(ProfiledTime, self.profile)
        return made[name]() if name in made else _own_model(name, made)

    def _usual_model(self, step: str | None) -> str:
        if step is not None:
            return _STEP
        if self.profile:
            return "profile"
        is_silent = self.is_log and self.arguments.pattern is None
        return "remote-copies" if is_silent else _STEP


def _step_time(step: str | None, where: Topology | None) -> PerformanceModel:
    """Return the model of --performance step; `where` has the usual jobs, None for others."""
    from topoplace_lab import usual_study
    from topoplace_lab.simulate import StepTime

    measured_on = usual_study.measured_on(where) if where else None
    with flags.named(default_step="--step"):
        return StepTime(default_step=None if step is None else options.step(step), measured_on=measured_on)


def _own_model(name: str, known: Collection[str]) -> PerformanceModel:
    """Return the model that MODULE:OBJECT means; ValueError if there is none."""
    from topoplace import _checks
    from topoplace._similar_names import not_one_of
    from topoplace_lab.simulate.performance.given_models import model_named

    if ":" not in name:
        raise ValueError(
            f"--performance {_checks.shown(name)}: {not_one_of(name, known)}; MODULE:OBJECT is your own"
        )
    with reading.errors_of("--performance"):
        return model_named(name)


def _stretched(workload: Workload, arguments: argparse.Namespace, topology: Topology) -> Workload:
    """Return the jobs, submitted so that they ask for the share of all GPU time that --load says."""
    if arguments.load is None:
        return workload
    with flags.named(load="--load"):
        return workload.with_load(arguments.load, topology.num_gpus, arguments.seed)


def _machines(arguments: argparse.Namespace, live: LiveCluster | None) -> tuple[Topology, GivenHosts | None]:
    """Return the topology, and the CPUs and memory of its machines, of which a live cluster tells nothing."""
    return (live.cluster.topology, None) if live else job_files.machines(arguments)


def _discipline(arguments: argparse.Namespace, workload: Workload, queue: str) -> Discipline | None:
    """Return the discipline of --order and --backfill, or of one queue for all policies; None for their own."""
    from topoplace_lab import usual_study

    if arguments.order is None and arguments.backfill is None and queue == "own":
        if any(workload.excluded):
            raise ValueError(
                "--queue own: jobs may use some machines only, which the policies' own queues do not know"
            )
        return None
    if arguments.make_room is not None:
        raise ValueError(
            "--make-room: moves are planned by the policy, which one queue for all policies replaces"
        )
    if arguments.order == "priority" and not any(job.priority for job in workload.jobs):
        raise ValueError("--order priority: no job has a priority; manifests can state it")
    if arguments.order == "fair" and not any(job.group for job in workload.jobs):
        raise ValueError("--order fair: no job has a group; manifests can state it")
    usual = usual_study.QUEUE
    return replace(usual, order=arguments.order or usual.order, backfill=arguments.backfill or usual.backfill)


def _failures(arguments: argparse.Namespace) -> tuple[Failures | None, Recovery | None]:
    """Return the failures of --failures and how jobs recover; None for both without it."""
    from topoplace_lab.simulate import Recovery
    from topoplace_lab.simulate.failures import PRESETS

    if arguments.lend_spares and arguments.spares is None:
        raise ValueError("--lend-spares is for --spares")
    if arguments.failures is None:
        for name in ("recovery", "checkpoint_every", "spares"):
            if getattr(arguments, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} is for --failures")
        return None, None
    spares = _spares(arguments.spares)
    chosen = Recovery(arguments.recovery or "repair", spares=spares, lent=arguments.lend_spares)
    if arguments.checkpoint_every is not None:
        with flags.named(checkpoint_every="--checkpoint-every"):
            chosen = replace(chosen, checkpoint_every=arguments.checkpoint_every)
    return PRESETS[arguments.failures](), chosen


def _spares(given: str | None) -> dict[str, int]:
    """Return the number of spares by level in --spares; ValueError for another text."""
    pairs = [text.partition("=") for text in listed(given, "--spares")]
    if any(not number.isdecimal() or not int(number) for _, _, number in pairs):
        raise ValueError(f"--spares {given!r}: must be levels and numbers above 0, such as rack=1")
    return {level: int(number) for level, _, number in pairs}


def _workload(
    arguments: argparse.Namespace, profile: PerformanceProfile | None, topology: Topology
) -> Workload:
    from topoplace_lab import usual_study

    if arguments.jobs:
        if arguments.num_jobs is not None:
            raise ValueError("--num-jobs is for the usual jobs, which --jobs replaces")
        return job_files.jobs_of(arguments.jobs, arguments, profile)
    job_files.refuse_without_file(arguments)
    with flags.named(pattern="--pattern"):
        return usual_study.jobs(topology, arguments.seed, arguments.num_jobs, pattern=arguments.pattern)
