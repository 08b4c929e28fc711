"""`topoplace simulate` simulates a queue of jobs under one policy; `topoplace compare` compares several policies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, reading, writing

if TYPE_CHECKING:
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.simulate import PerformanceModel, Result, Workload
    from topoplace.topology.topology import Topology

# Heading of a column -> key of a row of `Result.compare`.
_COMPARED = {
    "policy": "policy",
    "makespan s": "makespan",
    "utilization": "utilization",
    "mean wait s": "mean_wait",
    "sensitive p75 s": "sensitive_run_time_p75",
    "median EffBW": "sensitive_effective_bandwidth_p50",
    "throughput speed-up": "speedup",
    "p75 speed-up": "sensitive_p75_speedup",
}

# The columns for job logs, which do not contain how jobs communicate.
_LOGGED = {
    "policy": "policy",
    "makespan s": "makespan",
    "utilization": "utilization",
    "mean wait s": "mean_wait",
    "slowdown": "mean_slowdown",
    "slowdown incl. wait": "mean_slowdown_with_wait",
}

# The columns with a performance profile, which contains how jobs slow each other down (SC'17).
_SERVICE = {
    "policy": "policy",
    "makespan s": "makespan",
    "utilization": "utilization",
    "NVLink use": "nvlink_use",
    "mean wait s": "mean_wait",
    "slowdown": "mean_slowdown",
    "slowdown incl. wait": "mean_slowdown_with_wait",
    "utility": "mean_utility",
    "SLO violations": "slo_violations",
}


def add(commands: Any) -> None:
    """Add `topoplace simulate` and `topoplace compare` to the command line."""
    simulate = options.command(commands, "simulate", "run a queue of jobs under one policy", _simulate)
    options.add_topology(simulate)
    simulate.add_argument(
        "--policy", help="policy that decides (default: mapa-preserve; topo-aware with --profile)"
    )
    _add_workload(simulate)
    compare = options.command(
        commands, "compare", "run the same jobs under several policies, side by side", _compare
    )
    options.add_topology(compare)
    compare.add_argument("--policies", help="comma-separated names of policies (default: all)")
    _add_workload(compare)


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs",
        metavar="FILE",
        help="read jobs from FILE: CSV with a header, a trace, a log (Standard Workload Format, PBS accounting), "
        "MAPA's job lines or SC'17's manifests (default: MAPA's job mix)",
    )
    options.add_count(parser, "--num-jobs", 300, "number of jobs of the default mix")
    options.add_gpus_per_node(parser)
    options.add_hosts(parser)
    parser.add_argument(
        "--skip-bad-rows", action="store_true", help="skip rows of --jobs that cannot be read, and count them"
    )
    parser.add_argument(
        "--without",
        metavar="NAMES",
        help="leave these requirements of jobs out, separated by commas, such as min_utility,cpus",
    )
    options.add_seed(parser, "the mix, the run times, and of what a log does not contain")
    parser.add_argument(
        "--performance",
        choices=("mapa", "fixed", "profile", "remote-copies"),
        help="model of run times (default: mapa; profile with --profile, remote-copies for logs)",
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="use measured times, also in the policies of SC'17; see topoplace profile",
    )
    options.add_json(parser)
    options.add_output(parser)


def _simulate(arguments: argparse.Namespace) -> None:
    from topoplace.report import tables

    topology = reading.topology(arguments)
    picture = reading.output(arguments.output, "gantt.png")
    study = _Study(topology, arguments)
    result = study.run(arguments.policy or ("topo-aware" if arguments.profile else "mapa-preserve"))
    summary = result.summary()
    if arguments.json:
        rows = study.workload.report
        read = {} if rows is None else {"rows": rows.to_dict()}
        rejected = {"rejections": result.rejections()}
        writing.as_json({"topology": topology.name, "policy": result.policy, **summary, **rejected, **read})
    else:
        title = f"{len(result.jobs)} jobs on {topology.name}, {result.policy}"
        tables.show(("measure", "value"), summary.items(), title)
        for reason, count in result.rejections().items():
            print(f"rejected {count}: {reason}")
    if picture:
        result.gantt(picture)
        writing.wrote(picture, beside_json=arguments.json)


def _compare(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace.report import plots

    topology = reading.topology(arguments)
    picture = reading.output(arguments.output, "comparison.png")
    names = policies.names() if arguments.policies is None else _listed(arguments.policies, "--policies")
    study = _Study(topology, arguments)
    for name in names:
        policies.get(name)  # report an unknown name before the first run
    results, set_aside = study.run_all(names)
    rows = results[0].compare(results[1:])
    if arguments.json:
        writing.as_json(rows)
    else:
        columns = _SERVICE if arguments.profile else _LOGGED if study.is_log else _COMPARED
        if any(row["rejected"] for row in rows):
            columns = {**columns, "rejected": "rejected"}
        _print_comparison(rows, columns, f"{len(study.workload)} jobs on {topology.name}")
    for name, reason in set_aside.items():
        print(f"{name} is set aside: {reason}", file=sys.stderr)
    if picture:
        plots.comparison(results, picture)
        writing.wrote(picture, beside_json=arguments.json)


def _listed(names: str | None, flag: str) -> list[str]:
    """Return the names in a list separated by commas, none for None; ValueError names the flag of an empty name."""
    listed = [] if names is None else [name.strip() for name in names.split(",")]
    if not all(listed):
        raise ValueError(f"{flag} {names!r}: a name is empty")
    return listed


class _Study:
    """The topology, jobs and run time model of one command, which are equal for all policies it compares."""

    def __init__(self, topology: Topology, arguments: argparse.Namespace) -> None:
        self.topology = topology
        self.arguments = arguments
        self.profile = reading.profile(arguments.profile) if arguments.profile else None
        self.workload = _workload(arguments, self.profile).without(*_listed(arguments.without, "--without"))
        self.is_log = any(self.workload.transfers)
        """True if the jobs are from the log of a batch system."""
        self.model = self._model(arguments.performance)

    def run_all(self, names: Sequence[str]) -> tuple[list[Result], dict[str, str]]:
        """Simulate the jobs under each policy; return the results, and why policies that cannot run them are set aside.

        ValueError with the first of these reasons if there is no result.
        """
        results: list[Result] = []
        set_aside: dict[str, str] = {}
        for name in names:
            try:
                result = self.run(name)
            except ValueError as error:
                set_aside[name] = str(error)
                continue
            reasons = result.rejections()
            if sum(reasons.values()) == len(result.records) and "cannot be honoured" in next(
                iter(reasons), ""
            ):
                set_aside[name] = next(iter(reasons))
            else:
                results.append(result)
        if not results:
            raise ValueError(next(iter(set_aside.values())))
        return results, set_aside

    def run(self, name: str) -> Result:
        """Simulate the jobs under the policy called `name`; a policy of SC'17 also gets the performance profile."""
        from topoplace import policies
        from topoplace.simulate import simulate

        policy = policies.get(name)
        if self.profile and isinstance(policy, policies.UtilityPolicy):
            policy = policies.get(name, profile=self.profile)
        seed, progress = self.arguments.seed, not self.arguments.json
        return simulate(
            self.topology,
            self.workload,
            policy,
            performance=self.model,
            seed=seed,
            progress=progress,
            hosts=reading.hosts(self.arguments),
        )

    def _model(self, name: str | None) -> PerformanceModel:
        from topoplace.simulate import FixedTime, MapaSlowdown, ProfiledTime, RemoteCopies

        if name == "profile" and self.profile is None:
            raise ValueError("--performance profile needs --profile FILE")
        if self.profile and name in (None, "profile"):
            return ProfiledTime(self.profile)
        if name == "remote-copies" or (name is None and self.is_log):
            return RemoteCopies()
        return FixedTime() if name == "fixed" else MapaSlowdown()


def _workload(arguments: argparse.Namespace, profile: PerformanceProfile | None) -> Workload:
    from topoplace.simulate import Workload

    if not arguments.jobs:
        return Workload.mapa(arguments.num_jobs, arguments.seed)
    text = reading.text(arguments.jobs)
    with reading.errors_of(arguments.jobs):
        read = _read_jobs(text, arguments, profile)
    if read.report and (read.report.skipped or read.report.unused):
        print(f"{arguments.jobs}: {read.report}", file=sys.stderr)
    return read


def _read_jobs(text: str, arguments: argparse.Namespace, profile: PerformanceProfile | None) -> Workload:
    from topoplace.simulate import Workload

    skip = arguments.skip_bad_rows
    if text.lstrip()[:1] in ("{", "["):
        return Workload.from_manifests(text, profile, skip_bad_rows=skip)
    if (log := reading.log(text, arguments)) is not None:
        return log
    if text.lstrip()[:1].isdigit():
        return Workload.from_mapa(text)
    if "job_id" in text.lstrip().split("\n", 1)[0]:
        return Workload.from_trace(text, profile=profile, skip_bad_rows=skip)
    return Workload.from_csv(text)


def _print_comparison(rows: Sequence[dict[str, Any]], columns: Mapping[str, str], title: str) -> None:
    from topoplace.report import tables

    tables.show(tuple(columns), [[row[key] for key in columns.values()] for row in rows], title)
