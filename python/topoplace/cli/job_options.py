"""Options that describe one job: its pattern, its size and its requirements."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Final

from topoplace._similar_names import not_one_of
from topoplace.cli import flags

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph

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
}
"""The option for each argument of a job graph."""


def add_job(parser: argparse.ArgumentParser, size: str = "4") -> None:
    """Add the options of a job, which `job` reads; `size` is the default of --gpus in the help text."""
    parser.add_argument(
        "--pattern",
        default="ring",
        help="communication of the tasks (default: ring): "
        "ring, chain, star, tree, clique, allreduce, independent, mesh, torus",
    )
    parser.add_argument(
        "--gpus", metavar="N", help=f"number of GPUs, or 2x4 for a mesh or torus (default: {size})"
    )
    parser.add_argument("--sensitive", action="store_true", help="the job runs slower on slower links")
    _add_requirements(parser)


def _add_requirements(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--need-model",
        metavar="MODEL[,MODEL]",
        help="the job needs GPUs of this model, or of any of these, whose order means nothing",
    )
    parser.add_argument("--gpu-memory-gb", type=float, metavar="X", help="the job needs X GB on each GPU")
    parser.add_argument("--single-machine", action="store_true", help="all GPUs must be on one machine")
    parser.add_argument("--anti-affinity", action="store_true", help="each GPU must be on its own machine")
    parser.add_argument("--within", metavar="LEVEL", help="all machines must be in one domain of this level")
    parser.add_argument("--prefer", metavar="LEVEL", help="prefer machines in one domain of this level")
    parser.add_argument(
        "--spread", metavar="LEVEL", help="no two machines may be in one domain of this level"
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
        return _pattern(arguments.pattern, default_size if arguments.gpus is None else arguments.gpus).with_(
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
        )


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
