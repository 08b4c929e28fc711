"""`topoplace papers` compares a paper's numbers with ours; it also writes logs in the form of MAPA's artifact."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading, writing
from topoplace_lab.commands import job_files

if TYPE_CHECKING:
    from topoplace_lab.papers.claims import PaperClaim


_MAX_NODES = 100_000
_MAX_PROCESSES = 1024


def add(commands: Any) -> None:
    """Add `topoplace papers` to the command line, with one subcommand per paper."""
    which = options.group(commands, "papers", "reproduce a paper's numbers", "PAPER")
    _add_mapa(which)
    _add_sc17(which)
    _add_drmaestro(which)
    _add_gpuaas(which)
    _add_tsubame(which)


def _paper(
    papers: Any, name: str, summary: str, run: options.Run, *, quick: str, seed: str
) -> argparse.ArgumentParser:
    """Add the subcommand `name` for one paper, with the options that all papers share, and return its parser.

    quick: help text of `--quick`. seed: what the seed determines, for the help text of `--seed`.
    """
    parser = options.command(
        papers,
        name,
        summary,
        run,
        examples=[f"topoplace papers {name} --quick", f"topoplace papers {name} --jobs 4 -o pictures"],
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    options.add_json(parser)
    options.add_seed(parser, seed)
    options.add_output(parser)
    options.add_count(parser, "--jobs", 1, "simulations that run at the same time", _MAX_PROCESSES)
    return parser


def _show_rows(
    arguments: argparse.Namespace, reproduce: Callable[..., Sequence[PaperClaim]], **more: Any
) -> None:
    """Call `reproduce` with the options that all papers share and with `more`, and print the claims it returns."""
    from topoplace_lab.simulate.processes import Runner

    output = writing.directory(arguments.output)
    runner = Runner(arguments.jobs, progress=sys.stderr.isatty())
    rows = reproduce(quick=arguments.quick, seed=arguments.seed, output=output, runner=runner, **more)
    if arguments.json:
        writing.as_json([row.to_dict() for row in rows])
    else:
        _print_claims(rows)


def _add_gpuaas(papers: Any) -> None:
    summary = "Filippini et al.: GPU as a service, row by row"
    parser = _paper(
        papers,
        "gpuaas",
        summary,
        _gpuaas,
        quick="5 and 10 nodes, half a second per decision, three job lists, two rows less",
        seed="the first list of jobs",
    )
    parser.add_argument(
        "--nodes", metavar="N,N,...", type=_sizes, help="cluster sizes, multiples of 5 (default: 5,10,20)"
    )
    parser.add_argument(
        "--times",
        metavar="FILE",
        help="draw jobs from measured times, in the format that the authors publish",
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 5,10") from None


def _gpuaas(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import gpuaas
    from topoplace_lab.papers.gpuaas import published

    times = None
    if arguments.times:
        times = reading.text(arguments.times)
        with reading.errors_of(arguments.times):
            published.tables_of(times)  # here, so that errors name the file
    with flags.named(nodes="--nodes"):
        _show_rows(arguments, gpuaas.reproduce, nodes=arguments.nodes, times=times)


def _add_tsubame(papers: Any) -> None:
    summary = "TSUBAME 2.5's G queue and R queue: GPUs borrowed by rCUDA, row by row"
    parser = _paper(
        papers,
        "tsubame",
        summary,
        _tsubame,
        quick="three logs of ten days instead of ten years",
        seed="the generated log, and of what a given log does not contain",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="use this log (Standard Workload Format, PBS accounting) instead of a generated one",
    )
    options.add_gpus_per_node(parser)
    options.add_count(parser, "--nodes", 480, "number of nodes of the cluster", _MAX_NODES)


def _tsubame(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import tsubame

    log = None
    if arguments.gpus_per_node and not arguments.log:
        raise ValueError("--gpus-per-node needs --log, whose jobs get the GPUs")
    if arguments.log:
        text = reading.text(arguments.log)
        with reading.errors_of(arguments.log):
            log = job_files.log(text, arguments)
            if log is None:
                raise ValueError("neither Standard Workload Format nor a PBS accounting log")
    _show_rows(
        arguments,
        tsubame.reproduce,
        log=log,
        nodes=arguments.nodes,
    )


def _add_drmaestro(papers: Any) -> None:
    summary = "Amaral's thesis, chapter 5: disaggregated GPUs, row by row"
    _paper(
        papers,
        "drmaestro",
        summary,
        _drmaestro,
        quick="three lists of jobs instead of ten, fewer machines",
        seed="the first list of jobs",
    )


def _drmaestro(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import drmaestro

    _show_rows(arguments, drmaestro.reproduce)


def _add_sc17(papers: Any) -> None:
    summary = "Amaral et al. (SC'17), row by row, and their published simulator"
    parser = _paper(
        papers,
        "sc17",
        summary,
        _sc17,
        quick="fewer lists of jobs, no large clusters",
        seed="the first list of jobs",
    )
    parser.add_argument(
        "--profile", metavar="PROFILE", help="use this performance profile instead of the published one"
    )
    parser.add_argument(
        "--lists",
        metavar="DIR",
        type=options.path,
        help="also run the published workloads-*.json of this directory",
    )


def _sc17(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import sc17

    profile = reading.profile(arguments.profile) if arguments.profile else None
    _show_rows(
        arguments,
        sc17.reproduce,
        profile=profile,
        lists=arguments.lists,
    )


def _add_mapa(papers: Any) -> None:
    summary = "MAPA (SC'21), row by row, and its artifact's logs job by job"
    parser = _paper(
        papers, "mapa", summary, _mapa, quick="three job lists instead of ten", seed="the first job list"
    )
    parser.add_argument(
        "--artifact",
        metavar="DIR",
        type=options.path,
        help="match results-*.txt, and published-*.txt, of the jobs-*.txt in this directory",
    )
    parser.add_argument(
        "--model",
        choices=("eq2", "collective"),
        default="eq2",
        help="run times: eq2 as in the paper; collective compares them with those by NCCL's rings (default: eq2)",
    )
    parser.add_argument(
        "--step",
        metavar="SECONDS,GB",
        help="computing and all-reduce of a sensitive job's step, for --model collective (default: 0.1,0.5)",
    )
    log = parser.add_argument_group("the artifact's log for a job file of your own")
    log.add_argument("--job-lines", metavar="FILE", help="the artifact's job lines")
    log.add_argument(
        "--topology",
        metavar="FILE|NAME",
        help="its edge lines, or dgx-v, dgx-p, summit, torus-2d, cubeMesh-16",
    )
    log.add_argument("--policy", metavar="NAME", help="baseline, topoAware, greedy or preserve")
    log.add_argument("--rules", help="the queue as in the paper, or as published (default: paper)")
    log.add_argument("--write", metavar="FILE", default="-", help="write to FILE (default: standard output)")


def _mapa(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import mapa

    if arguments.job_lines or arguments.topology or arguments.policy or arguments.rules is not None:
        _artifact_log(arguments)
        return
    if arguments.model == "collective":
        if arguments.artifact:
            raise ValueError("--artifact compares logs, which --model collective does not have")
        with flags.named(default_step="--step"):
            step = {} if arguments.step is None else {"step": options.step(arguments.step)}
            _show_rows(arguments, mapa.reproduce_by_rings, **step)
        return
    if arguments.step is not None:
        raise ValueError("--step is for --model collective")
    _show_rows(
        arguments,
        mapa.reproduce,
        artifact=arguments.artifact,
    )


def _artifact_log(arguments: argparse.Namespace) -> None:
    from topoplace_lab.papers import mapa
    from topoplace_lab.simulate import Workload

    given = {
        "--job-lines": arguments.job_lines,
        "--topology": arguments.topology,
        "--policy": arguments.policy,
    }
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing: the artifact's log needs {', '.join(given)}")
    topology = mapa.machine_named(arguments.topology)
    if topology is None:
        topology = reading.text(arguments.topology)
        with reading.errors_of(arguments.topology):
            mapa.parse_topology(topology)  # here, so that errors name the file
    jobs = reading.text(arguments.job_lines)
    with reading.errors_of(arguments.job_lines):
        Workload.from_mapa(jobs)
    inputs = [("--job-lines", arguments.job_lines), ("--topology", arguments.topology)]
    output = None if arguments.write == "-" else writing.file(Path(arguments.write), "--write", inputs)
    with flags.named(policy="--policy", rules="--rules"):
        log = mapa.run_artifact(
            jobs, topology, arguments.policy, rules="paper" if arguments.rules is None else arguments.rules
        )
    if output is None:
        sys.stdout.write(log)
    else:
        writing.write(output, log)


def _print_claims(claims: Sequence[PaperClaim]) -> None:
    """Print each claim in three lines (verdict, the paper's value and ours, reason), then count the verdicts."""
    from topoplace_lab.papers.claims import RESULTS

    for claim in claims:
        print(f"{claim.verdict:14}  {claim.id}  {claim.quantity}")
        print(f"{'':16}paper: {claim.paper}   ours: {claim.ours}")
        print(f"{'':16}{claim.why}")
    verdicts = Counter(claim.verdict for claim in claims)
    print(_counted(verdicts, [kind for kind in RESULTS if kind in verdicts]))
    if others := sorted(set(verdicts) - set(RESULTS)):
        print(f"in addition, no results: {_counted(verdicts, others)}")


def _counted(verdicts: Mapping[str, int], kinds: Sequence[str]) -> str:
    return ", ".join(f"{verdicts[kind]} {kind}" for kind in kinds)
