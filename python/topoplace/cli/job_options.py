"""Options that describe one job: its pattern and size, or the degrees of a training job, and its requirements."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from topoplace._similar_names import not_one_of
from topoplace.cli import flags

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.jobs.parallel_traffic import Traffic, Training

_MAX_TASKS = 4096
FLAGS: Final = {
    **dict.fromkeys(("k", "dims"), "--gpus"),
    "gpu_model": "--need-model",
    "gpu_memory_gb": "--gpu-memory-gb",
    "single_machine": "--single-machine",
    "anti_affinity": "--anti-affinity",
    "gpu_fraction": "--gpu-fraction",
    "mig": "--mig",
    "min_utility": "--min-utility",
    "within": "--within",
    "prefer": "--prefer",
    "spread": "--spread",
    "max_machines": "--max-machines",
    "same_gpus": "--same-gpus",
    "groups: level": "--group or --prefer-group: level",
    "balanced": "--balanced",
    "order": "--order",
    "model": "--model",
    "micro_batches": "--micro-batches",
    "zero_stage": "--zero-stage",
}
"""The option for each argument of a job graph and of its traffic."""
_DIMENSIONS: Final = ("tensor", "pipeline", "data", "context", "expert")
_TRAINING: Final = ("micro_batches", "sequence_parallel", "zero_stage")
"""The options of training, as arguments of `Traffic.of`."""


def add_job(parser: argparse.ArgumentParser, size: str = "4") -> None:
    """Add the options of a job, which `job` reads; `size` is the default of --gpus in the help text."""
    parser.add_argument(
        "--pattern",
        help="communication of the tasks (default: ring): "
        "ring, chain, star, tree, clique, allreduce, independent, mesh, torus",
    )
    parser.add_argument(
        "--gpus", metavar="N", help=f"number of GPUs, or 2x4 for a mesh or torus (default: {size})"
    )
    _add_parallel(parser)
    _add_roles(parser)
    parser.add_argument("--sensitive", action="store_true", help="the job runs slower on slower links")
    _add_requirements(parser)
    _add_groups(parser)


def _add_parallel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parallel",
        metavar="DIMENSION=N[,...]",
        help="instead of --pattern and --gpus: the degrees to which a training job is divided, such as "
        f"tensor=8,pipeline=4,data=16; the dimensions are {', '.join(_DIMENSIONS)}",
    )
    parser.add_argument(
        "--order",
        metavar="DIMENSIONS",
        help="how --parallel numbers its ranks (default: tensor-context-data-pipeline, tensor fastest)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model whose traffic --parallel uses for a step, such as llama3-70b (default: 1 GB in each group)",
    )
    parser.add_argument(
        "--micro-batches",
        type=int,
        metavar="N",
        help="micro-batches of each data rank in a step of --model (default: 1)",
    )
    parser.add_argument(
        "--sequence-parallel",
        action="store_true",
        help="tensor ranks of --model divide the sequence between layers",
    )
    parser.add_argument(
        "--zero-stage", type=int, metavar="N", help="what data ranks of --model divide, 0 to 3 (default: 0)"
    )


def _add_roles(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="NAME=GPUS[:PATTERN]",
        help="a role of the job, such as prefill=4, decode=8:allreduce, trainer=16; repeat it for the others",
    )
    parser.add_argument(
        "--between",
        action="append",
        default=[],
        metavar="NAME+NAME=GB",
        help="GB that two roles exchange in each step, such as prefill+decode=8",
    )


def _add_groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="SIZE@LEVEL",
        help="each group of SIZE consecutive tasks must be in one domain of this level, such as 8@machine; sizes such "
        "as 16+16+8, a dimension of --parallel and a role are groups, too; repeat it for groups inside groups",
    )
    parser.add_argument(
        "--prefer-group",
        action="append",
        default=[],
        metavar="SIZE@LEVEL",
        help="each group of SIZE consecutive tasks should be in one domain of this level, if possible",
    )
    parser.add_argument(
        "--balanced",
        metavar="LEVEL",
        help="divide the job as evenly as possible over domains of this level, or over machines",
    )


def _add_requirements(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--need-model",
        metavar="MODEL[,MODEL]",
        help="the job needs GPUs of this model, or of any of these models, in no order",
    )
    parser.add_argument("--gpu-memory-gb", type=float, metavar="X", help="the job needs X GB on each GPU")
    parser.add_argument("--single-machine", action="store_true", help="all GPUs must be on one machine")
    parser.add_argument("--anti-affinity", action="store_true", help="each GPU must be on its own machine")
    parser.add_argument(
        "--within", metavar="LEVEL", help="all GPUs must be in one domain of this level, or one socket"
    )
    parser.add_argument("--prefer", metavar="LEVEL", help="prefer machines in one domain of this level")
    parser.add_argument(
        "--spread",
        metavar="LEVEL",
        help="no two machines may be in one domain of this level; gpu: prefer the emptiest of shared GPUs",
    )
    parser.add_argument("--max-machines", type=int, metavar="N", help="use at most N machines")
    parser.add_argument(
        "--same-gpus", action="store_true", help="use the same local GPU numbers on each machine"
    )
    parser.add_argument(
        "--gpu-fraction",
        type=float,
        default=1.0,
        metavar="X",
        help="share of each GPU, 0.001 to 1 (default: 1)",
    )
    parser.add_argument("--mig", metavar="SLICE", help="a MIG slice of each GPU, such as 1g.10gb")
    parser.add_argument(
        "--min-utility",
        type=float,
        default=0.0,
        metavar="X",
        help="lowest utility that the job accepts, 0 to 1, for SC'17's policies",
    )


def job(arguments: argparse.Namespace, default_size: str = "4") -> JobGraph:
    """Return the job that the options describe, with its requirements; `default_size` stands for --gpus."""
    models = arguments.need_model
    with flags.named(**FLAGS):
        graph = _graph(arguments, default_size).with_(
            bandwidth_sensitive=arguments.sensitive,
            gpu_model=None if models is None else [model.strip() for model in models.split(",")],
            gpu_memory_gb=arguments.gpu_memory_gb,
            single_machine=arguments.single_machine,
            anti_affinity=arguments.anti_affinity,
            gpu_fraction=arguments.gpu_fraction,
            mig=arguments.mig,
            min_utility=arguments.min_utility,
            within=arguments.within,
            prefer=arguments.prefer,
            spread=arguments.spread,
            max_machines=arguments.max_machines,
            same_gpus=arguments.same_gpus,
            balanced=arguments.balanced,
        )
        return _grouped(graph, arguments)


def _graph(arguments: argparse.Namespace, default_size: str) -> JobGraph:
    """Return the tasks and their communication, without requirements."""
    if arguments.role:
        return _of_roles(arguments)
    if arguments.between:
        raise ValueError("--between needs --role")
    if arguments.parallel is not None:
        return _training_job(arguments)
    _refuse(arguments, ("order", "model", *_TRAINING), "needs --parallel")
    pattern = "ring" if arguments.pattern is None else arguments.pattern
    return _pattern(pattern, default_size if arguments.gpus is None else arguments.gpus)


def _refuse(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise ValueError for the first of these options that is given."""
    for name in names:
        value = getattr(arguments, name)
        if not (value is None or value is False):
            raise ValueError(f"--{name.replace('_', '-')} {why}")


def _training_job(arguments: argparse.Namespace) -> JobGraph:
    from topoplace.jobs.job_graph import JobGraph

    _refuse(arguments, ("pattern", "gpus"), "says the same as --parallel; give one of the two")
    stated: dict[str, Any] = {**_degrees(arguments.parallel), "traffic": _traffic(arguments)}
    if arguments.order is not None:
        stated["order"] = arguments.order
    try:
        return JobGraph.parallel(**stated)
    except ValueError as error:
        if str(error).startswith("order = "):
            raise
        raise ValueError(f"--parallel {arguments.parallel!r}: {error}") from None


def _degrees(text: str) -> dict[str, int]:
    """Return the degree of each dimension that the value of --parallel names."""
    degrees: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        where = f"--parallel {text!r}: {part!r}"
        if name not in _DIMENSIONS:
            raise ValueError(f"{where}: {not_one_of(name, _DIMENSIONS)}")
        if name in degrees:
            raise ValueError(f"{where}: {name} is also {degrees[name]}")
        try:
            degrees[name] = int(number)
        except ValueError:
            raise ValueError(f"{where}: not DIMENSION=N, such as tensor=8") from None
    return degrees


def _traffic(arguments: argparse.Namespace) -> Traffic | None:
    """Return what a training job moves in a step; None without --model."""
    if arguments.model is None:
        _refuse(arguments, _TRAINING, "needs --model")
        return None
    from topoplace.jobs.parallel_traffic import Traffic

    given = {name: getattr(arguments, name) for name in _TRAINING}
    stated = {name: value for name, value in given.items() if value is not None}
    return Traffic.of(arguments.model, **cast("Training", stated))


def _of_roles(arguments: argparse.Namespace) -> JobGraph:
    """Return the job of the roles of --role, which exchange what --between says."""
    from topoplace.jobs.job_graph import JobGraph

    _refuse(arguments, ("pattern", "gpus", "parallel"), "is not for a job of roles; say it in --role")
    roles: list[JobGraph] = []
    for text in arguments.role:
        name, found, size = text.partition("=")
        gpus, _, pattern = size.partition(":")
        try:
            if not found:
                raise ValueError("not NAME=GPUS, such as prefill=4")
            roles.append(_pattern(pattern or "ring", gpus).with_(name=name))
        except ValueError as error:
            raise ValueError(f"--role {text!r}: {error}") from None
    traffic: dict[tuple[str | int, str | int], float] = {}
    for text in arguments.between:
        pair, _, gigabytes = text.partition("=")
        first, _, second = pair.partition("+")
        try:
            traffic[first, second] = float(gigabytes)
        except ValueError:
            raise ValueError(f"--between {text!r}: not NAME+NAME=GB, such as prefill+decode=8") from None
    try:
        return JobGraph.joined(roles, traffic)
    except ValueError as error:
        option = "--between" if str(error).startswith("traffic") else "--role"
        raise ValueError(f"{option}: {error}") from None


def _grouped(job: JobGraph, arguments: argparse.Namespace) -> JobGraph:
    """Return the job with the groups of --group and --prefer-group."""
    from topoplace.jobs.groups import sized_groups

    for option, argument, texts in (
        ("--group", "within", arguments.group),
        ("--prefer-group", "prefer", arguments.prefer_group),
    ):
        for text in texts:
            try:
                groups, level = sized_groups(text)
                job = job.grouped(groups, **{argument: level})
            except ValueError as error:
                raise ValueError(f"{option} {text!r}: {error}") from None
    return job


def _pattern(pattern: str, gpus: str) -> JobGraph:
    from topoplace.jobs.job_graph import PATTERNS, JobGraph

    try:
        sizes = [int(size) for size in gpus.split("x")]
    except ValueError:
        raise ValueError(f"--gpus {gpus!r}: not a number such as 4, nor 2x4") from None
    if min(sizes) < 1 or math.prod(sizes) > _MAX_TASKS:
        raise ValueError(f"--gpus {gpus!r}: not in 1..{_MAX_TASKS}")
    if pattern in ("mesh", "torus"):
        return JobGraph.mesh(sizes) if pattern == "mesh" else JobGraph.torus(sizes)
    if pattern not in PATTERNS:
        raise ValueError(f"--pattern {pattern!r}: {not_one_of(pattern, (*PATTERNS, 'mesh', 'torus'))}")
    if len(sizes) > 1:
        raise ValueError(f"--gpus {gpus!r}: a {pattern} takes one number")
    return PATTERNS[pattern](sizes[0])
