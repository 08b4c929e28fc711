"""The command `topoplace`. Exit codes: 0 done, 1 nothing could be placed, 2 wrong input (one line says what)."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from topoplace import __version__

if TYPE_CHECKING:
    from topoplace.cluster import Cluster
    from topoplace.jobgraph import JobGraph
    from topoplace.papers.claims import Claim
    from topoplace.placement import Placement
    from topoplace.policies.base import Policy
    from topoplace.simulate import Result, Workload
    from topoplace.topology import Topology

_MAX_TASKS = 4096
_NOT_PLACED = 1
_WRONG_INPUT = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141  # what a shell reports for a program whose reader went away

_TOPO_HELP = "a built-in machine, a JSON file, a file of `nvidia-smi topo -m` text, or - for standard input"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        print(f"topoplace: {_one_line(error)}", file=sys.stderr)
        return _WRONG_INPUT
    return code


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments like all wrong input, in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_WRONG_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="topoplace", description="Which accelerators should this job get, now, on this machine?"
    )
    parser.add_argument("--version", action="version", version=f"topoplace {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _command(commands, "machines", _machines, "list the built-in machines")
    show = _command(commands, "show", _show, "print a topology's bandwidths; with -o also draw it")
    _topology_arguments(show)
    _output_argument(show)
    _place_arguments(_command(commands, "place", _place, "choose GPUs for one job and say why"))
    simulate = _command(commands, "simulate", _simulate, "run a queue of jobs under one policy")
    _topology_arguments(simulate)
    simulate.add_argument("--policy", default="mapa-preserve", help="default: %(default)s")
    _workload_arguments(simulate)
    compare = _command(
        commands, "compare", _compare, "run the same jobs under several policies, side by side"
    )
    _topology_arguments(compare)
    compare.add_argument("--policies", help="comma-separated names (default: all)")
    _workload_arguments(compare)
    papers = _command(commands, "papers", None, "reproduce a paper's numbers")
    _mapa_arguments(papers.add_subparsers(metavar="PAPER", required=True))
    demo = _command(
        commands, "demo", _demo, "place and simulate jobs on three machines; pictures go to ./out"
    )
    demo.add_argument("-o", dest="output", type=Path, default=Path("out"), help="directory, made if need be")
    return parser


def _command(commands: Any, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    return parser


def _topology_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", metavar="TOPO", help=_TOPO_HELP)
    parser.add_argument("--gpu-model", help="model, such as V100, where `nvidia-smi` text does not tell")


def _output_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", dest="output", metavar="DIR", type=Path, help="write pictures into this directory"
    )


def _place_arguments(parser: argparse.ArgumentParser) -> None:
    _topology_arguments(parser)
    parser.add_argument(
        "--pattern",
        default="ring",
        help="ring, chain, star, tree, clique, allreduce, independent, mesh, torus",
    )
    parser.add_argument(
        "--gpus", default="4", metavar="N", help="how many, or 2x4 for a mesh or torus (default: 4)"
    )
    parser.add_argument("--sensitive", action="store_true", help="the job runs slower on slower links")
    parser.add_argument("--policy", default="mapa-preserve", help="default: %(default)s")
    parser.add_argument("--busy", default="", metavar="IDS", help="GPUs in use, such as 0,3")
    parser.add_argument("--top", type=_count, default=3, metavar="N", help="candidates to show (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _output_argument(parser)


def _workload_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", metavar="FILE", help="CSV with a header, or MAPA's job lines; default: MAPA's job mix"
    )
    parser.add_argument(
        "--num-jobs", type=_count, default=300, metavar="N", help="of the default mix (default: 300)"
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of the mix and the run times (default: 0)")
    parser.add_argument(
        "--performance", choices=("mapa", "fixed"), default="mapa", help="run times (default: mapa)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    _output_argument(parser)


def _mapa_arguments(papers: Any) -> None:
    parser = _command(papers, "mapa", _mapa, "MAPA (SC'21), row by row, and its artifact's logs job by job")
    parser.add_argument("--quick", action="store_true", help="fewer seeds")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--seed", type=_seed, default=0, help="of the first job list (default: 0)")
    parser.add_argument(
        "--artifact", metavar="DIR", type=Path, help="directory with jobs-*.txt and results-*.txt to match"
    )
    _output_argument(parser)
    log = parser.add_argument_group("the artifact's log for a job file of your own")
    log.add_argument("--jobs", metavar="FILE", help="the artifact's job lines")
    log.add_argument(
        "--topology",
        metavar="FILE|NAME",
        help="its edge lines, or dgx-v, dgx-p, summit, torus-2d, cubeMesh-16",
    )
    log.add_argument("--policy", help="baseline, topoAware, greedy or preserve")
    log.add_argument("--write", metavar="FILE", default="-", help="where to (default: standard output)")


def _count(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < least:
        raise argparse.ArgumentTypeError(f"{value} is not at least {least}")
    return value


# ---- commands ----------------------------------------------------------------------------------------------------


def _machines(_: argparse.Namespace) -> None:
    from topoplace import machines
    from topoplace.report import tables

    rows: list[tuple[object, ...]] = []
    for name in machines.names():
        topology = machines.get(name)
        kinds: dict[str, int] = {}
        for _u, _v, link in topology.links:
            label = f"{link.kind.name} x{link.lanes}"
            kinds[label] = kinds.get(label, 0) + 1
        wiring = ", ".join(f"{count} {label}" for label, count in sorted(kinds.items()))
        rows.append((name, topology.num_gpus, topology.gpus[0].model or "-", wiring or "-"))
    tables.show(("machine", "GPUs", "model", "direct links"), rows)


def _show(arguments: argparse.Namespace) -> None:
    from topoplace.report import tables

    topology = _read_topology(arguments.topology, arguments.gpu_model)
    picture = _output_file(arguments.output, f"{_file_name(topology.name)}.png")
    matrix = topology.bandwidth_matrix()
    rows = [
        (f"GPU {gpu}", *("-" if i == gpu else f"{value:g}" for i, value in enumerate(row)))
        for gpu, row in enumerate(matrix)
    ]
    title = f"{topology.name}: GB/s between GPUs, one direction"
    tables.show(("", *map(str, range(topology.num_gpus))), rows, title)
    if picture:
        from topoplace.report import plots

        plots.topology(topology, picture)
        print(f"wrote {picture}")


def _place(arguments: argparse.Namespace) -> int:
    from topoplace import policies

    cluster = _cluster_with_busy(_read_topology(arguments.topology, arguments.gpu_model), arguments.busy)
    job = _job(arguments.pattern, arguments.gpus).with_(bandwidth_sensitive=arguments.sensitive)
    policy = policies.get(arguments.policy)
    picture = _output_file(arguments.output, "placement.png")
    explained = policy.explain(job, cluster, top=arguments.top)
    placed = explained.candidates[0] if explained.candidates and not explained.deferred else None
    reason = explained.deferred.reason if explained.deferred else None
    if arguments.json:
        candidates = [_placement_json(candidate) for candidate in explained.candidates]
        print(
            json.dumps(
                {
                    "topology": cluster.topology.name,
                    "policy": policy.name,
                    "placement": _placement_json(placed) if placed else None,
                    "reason": reason,
                    "candidates": candidates,
                },
                indent=2,
            )
        )
    else:
        _print_placement(job, cluster, policy, explained.candidates, placed, reason)
    if picture and placed:
        from topoplace.report import plots

        busy = set(range(cluster.topology.num_gpus)) - set(cluster.free_gpus())
        plots.topology(cluster.topology, picture, busy=busy, chosen=placed.gpus, job=job)
        _wrote(picture, arguments)
    return 0 if placed else _NOT_PLACED


def _simulate(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace.report import tables

    topology = _read_topology(arguments.topology, arguments.gpu_model)
    picture = _output_file(arguments.output, "gantt.png")
    result = _run(topology, _workload(arguments), policies.get(arguments.policy), arguments)
    summary = result.summary()
    if arguments.json:
        print(json.dumps({"topology": topology.name, "policy": result.policy, **_finite(summary)}, indent=2))
    else:
        tables.show(
            ("measure", "value"),
            summary.items(),
            f"{len(result.jobs)} jobs on {topology.name}, {result.policy}",
        )
    if picture:
        result.gantt(picture)
        _wrote(picture, arguments)


def _compare(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace.report import plots

    topology = _read_topology(arguments.topology, arguments.gpu_model)
    picture = _output_file(arguments.output, "comparison.png")
    names = arguments.policies.split(",") if arguments.policies else policies.names()
    chosen = [policies.get(name.strip()) for name in names]
    workload = _workload(arguments)
    results = [_run(topology, workload, policy, arguments) for policy in chosen]
    if arguments.json:
        print(json.dumps([_finite(row) for row in results[0].compare(results[1:])], indent=2))
    else:
        _print_comparison(results)
    if picture:
        plots.comparison(results, picture)
        _wrote(picture, arguments)


def _mapa(arguments: argparse.Namespace) -> None:
    from topoplace.papers import mapa

    if arguments.jobs or arguments.topology or arguments.policy:
        _artifact_log(arguments)
        return
    _output_file(arguments.output, "")
    rows = mapa.reproduce(
        quick=arguments.quick, seed=arguments.seed, artifact=arguments.artifact, output=arguments.output
    )
    if arguments.json:
        print(json.dumps([row.to_dict() for row in rows], indent=2))
        return
    _print_claims(rows)


def _artifact_log(arguments: argparse.Namespace) -> None:
    from topoplace.papers import mapa

    missing = [f"--{name}" for name in ("jobs", "topology", "policy") if not getattr(arguments, name)]
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} missing: the artifact's log needs --jobs, --topology and --policy"
        )
    topology = mapa.machine_named(arguments.topology) or _read_text(arguments.topology)
    log = mapa.run_artifact(_read_text(arguments.jobs), topology, arguments.policy)
    if arguments.write == "-":
        sys.stdout.write(log)
    else:
        Path(arguments.write).write_text(log, encoding="utf-8")


def _demo(arguments: argparse.Namespace) -> None:
    from topoplace.demo import run

    arguments.output.mkdir(parents=True, exist_ok=True)
    run(arguments.output)


# ---- reading -----------------------------------------------------------------------------------------------------


def _read_topology(source: str, gpu_model: str | None) -> Topology:
    from topoplace import machines
    from topoplace.topology import Topology

    if source in machines.names():
        return machines.get(source)
    if source != "-" and not Path(source).exists():
        close = get_close_matches(source, machines.names(), n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"{source}: no such file, and no built-in machine{hint}")
    text = _read_text(source)
    where = "standard input" if source == "-" else source
    try:
        if text.lstrip().startswith("{"):
            return Topology.from_json(text)
        return Topology.from_nvidia_smi(text, gpu_model=gpu_model)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _read_text(source: str) -> str:
    where = "standard input" if source == "-" else source
    data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    if not data.strip():
        raise ValueError(f"{where}: empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: not a text file (byte {error.start} is 0x{data[error.start]:02x})"
        ) from None
    if "\0" in text:
        raise ValueError(f"{where}: not a text file (byte {text.index(chr(0))} is 0)")
    return text


def _workload(arguments: argparse.Namespace) -> Workload:
    from topoplace.simulate import Workload

    if not arguments.jobs:
        return Workload.mapa(arguments.num_jobs, arguments.seed)
    text = _read_text(arguments.jobs)
    try:
        return Workload.from_mapa(text) if text.lstrip()[:1].isdigit() else Workload.from_csv(text)
    except ValueError as error:
        raise ValueError(f"{arguments.jobs}: {error}") from None


def _job(pattern: str, gpus: str) -> JobGraph:
    from topoplace.jobgraph import JobGraph
    from topoplace.simulate.workload import PATTERNS

    try:
        sizes = [int(size) for size in gpus.split("x")]
    except ValueError:
        raise ValueError(f"--gpus {gpus!r}: not a number such as 4, nor 2x4") from None
    if math.prod(sizes) > _MAX_TASKS:
        raise ValueError(f"--gpus {gpus!r}: more than {_MAX_TASKS}")
    if pattern in ("mesh", "torus"):
        return JobGraph.mesh(sizes) if pattern == "mesh" else JobGraph.torus(sizes)
    if pattern not in PATTERNS:
        raise ValueError(f"--pattern {pattern!r}: not one of {', '.join(PATTERNS)}, mesh, torus")
    if len(sizes) > 1:
        raise ValueError(f"--gpus {gpus!r}: a {pattern} takes one number")
    return PATTERNS[pattern](sizes[0])


def _cluster_with_busy(topology: Topology, busy: str) -> Cluster:
    from topoplace.cluster import Cluster
    from topoplace.placement import Placement

    cluster = Cluster(topology)
    try:
        taken = tuple(int(gpu) for gpu in busy.split(",")) if busy.strip() else ()
    except ValueError:
        raise ValueError(f"--busy {busy!r}: not GPU numbers such as 0,3") from None
    wrong = [gpu for i, gpu in enumerate(taken) if not 0 <= gpu < topology.num_gpus or gpu in taken[:i]]
    if wrong:
        problem = (
            "given twice"
            if wrong[0] in range(topology.num_gpus)
            else f"the GPUs are 0..{topology.num_gpus - 1}"
        )
        raise ValueError(f"--busy {busy!r}: GPU {wrong[0]}: {problem}")
    if taken:
        cluster.allocate("busy", Placement(gpus=taken, topology=topology))
    return cluster


def _run(topology: Topology, workload: Workload, policy: Policy, arguments: argparse.Namespace) -> Result:
    from topoplace.simulate import FixedTime, MapaSlowdown, simulate

    model = MapaSlowdown() if arguments.performance == "mapa" else FixedTime()
    return simulate(
        topology, workload, policy, performance=model, seed=arguments.seed, progress=not arguments.json
    )


# ---- writing -----------------------------------------------------------------------------------------------------


def _output_file(directory: Path | None, name: str) -> Path | None:
    """Where to write `name`, refused before the work is done; None without a directory."""
    if directory is None:
        return None
    if not directory.is_dir():
        raise ValueError(
            f"-o {directory}: {'not a directory' if directory.exists() else 'no such directory'}"
        )
    return directory / name


def _wrote(picture: Path, arguments: argparse.Namespace) -> None:
    """Tell where the picture is, where it cannot mix with JSON."""
    print(f"wrote {picture}", file=sys.stderr if arguments.json else sys.stdout)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what could not be measured becomes null."""
    return {key: None if value != value else value for key, value in row.items()}


def _placement_json(placement: Placement) -> dict[str, Any]:
    scores = {key: value if value != float("inf") else None for key, value in placement.scores.items()}
    return {
        "gpus": list(placement.gpus),
        "optimal": placement.optimal,
        "scores": scores,
        "env": placement.env(),
    }


def _print_placement(
    job: JobGraph,
    cluster: Cluster,
    policy: Policy,
    candidates: Sequence[Placement],
    placed: Placement | None,
    reason: str | None,
) -> None:
    from topoplace.report import tables

    rows = [(" ".join(map(str, candidate.gpus)), *_score_cells(candidate)) for candidate in candidates]
    title = f"{job.name} of {job.num_tasks} on {cluster.topology.name}, {cluster.num_free} free, {policy.name} (GB/s)"
    if rows:
        tables.show(
            ("GPUs by task", "aggregated", "effective", "bottleneck", "preserved", "proven"), rows, title
        )
    if any(candidate.scores.get("effective_bandwidth_extrapolated") for candidate in candidates):
        print("effective: eq. 2 was fitted on 2 to 5 GPUs; it is neither used nor shown for this job")
    if placed is None:
        print(f"not placed: {reason}")
        return
    for name, value in placed.env().items():
        if isinstance(value, dict):
            print(f"{name}: {' '.join(f'{key}={text}' for key, text in value.items())}")
    if placed.topology.num_machines == 1:
        print(" ".join(f"{key}={text}" for key, text in placed.env().items()))


def _score_cells(placement: Placement) -> list[object]:
    names = ("aggregated", "effective", "bottleneck", "preserved")
    cells: list[object] = [placement.scores.get(f"{name}_bandwidth", "-") for name in names]
    if placement.scores.get("effective_bandwidth_extrapolated"):
        cells[names.index("effective")] = "-"
    return [*cells, "yes" if placement.optimal else "-"]


def _print_claims(claims: Sequence[Claim]) -> None:
    """Three lines a claim: a table of them would be wider than any screen."""
    verdicts: dict[str, int] = {}
    for claim in claims:
        verdicts[claim.verdict] = verdicts.get(claim.verdict, 0) + 1
        print(f"{claim.verdict:14}  {claim.id}  {claim.quantity}")
        print(f"{'':16}paper: {claim.paper}   ours: {claim.ours}")
        print(f"{'':16}{claim.why}")
    print(
        ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(verdicts.items(), key=lambda item: -item[1])
        )
    )


def _print_comparison(results: Sequence[Result]) -> None:
    from topoplace.report import tables

    measures = (
        "makespan",
        "utilization",
        "mean_wait",
        "sensitive_run_time_p75",
        "sensitive_effective_bandwidth_p50",
    )
    rows = results[0].compare(results[1:])
    table = [
        (row["policy"], *(row[name] for name in measures), row["speedup"], row["sensitive_p75_speedup"])
        for row in rows
    ]
    columns = (
        "policy",
        "makespan s",
        "utilization",
        "mean wait s",
        "sensitive p75 s",
        "median EffBW",
        "throughput x",
        "p75 x",
    )
    tables.show(columns, table, f"{len(results[0].jobs)} jobs on {results[0].topology.name}")
