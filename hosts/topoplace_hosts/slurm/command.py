"""`topoplace slurm`: choose GPUs for jobs of a Slurm cluster, write its configuration, and show how jobs start."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import flags, launch_files, options, reading, writing

_MAX_PORT = 65535


def add(commands: Any) -> None:
    """Add `topoplace slurm` to the command line, with its subcommands."""
    which = options.group(commands, "slurm", "choose GPUs for the jobs of a Slurm cluster", "WHAT")
    _add_run(which)
    _add_launch(which)
    _add_release(which)
    _add_gres(which)
    _add_file(which)


def _add_run(which: Any) -> None:
    parser = options.command(
        which,
        "run",
        "decide which GPUs the jobs of a Slurm cluster get; runs until it is stopped",
        _place,
        examples=["topoplace slurm run cluster.json --journal decisions.journal --policy topo-aware"],
    )
    options.add_topology(parser)
    options.add_policy(parser)
    _add_journal(parser)
    _add_patience(parser, "let Slurm choose if there are enough GPUs, but no decision after SECONDS")
    parser.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="seconds between two looks at the queue (default: 1)",
    )
    parser.add_argument(
        "--metrics", type=_port, metavar="PORT", help="serve Prometheus metrics on 127.0.0.1:PORT"
    )


def _add_launch(which: Any) -> None:
    parser = options.command(
        which,
        "launch",
        "write the files with which each rank of a running job starts on the machine and the GPU decided for it",
        _launch,
        examples=["topoplace slurm launch cluster.json --launch srun -o start"],
    )
    options.add_topology(parser)
    parser.add_argument(
        "--job",
        metavar="ID",
        type=_job_id,
        help="job, such as 12 or 12_3 of an array (default: the one that runs this)",
    )
    parser.add_argument(
        "--launch",
        choices=("srun", "torchrun", "mpirun", "hostfile", "rankfile"),
        default="srun",
        help="what starts the ranks (default: %(default)s)",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR",
        required=True,
        type=options.path,
        help="write the files into this directory, created if missing, which the nodes of the job share",
    )
    parser.set_defaults(json=False)


def _add_release(which: Any) -> None:
    what = "let Slurm choose GPUs for waiting jobs if no `topoplace slurm run` is alive"
    parser = options.command(
        which,
        "release",
        what,
        _release,
        examples=["topoplace slurm release --journal decisions.journal --patience 300"],
    )
    _add_journal(parser)
    _add_patience(
        parser, "do so for jobs older than SECONDS, if nothing was written to the journal for as long"
    )
    options.add_json(parser)


def _add_journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        required=True,
        type=options.path,
        metavar="FILE",
        help="file that keeps decisions across a crash; see `topoplace state`",
    )


def _add_patience(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--patience", type=float, default=300.0, metavar="SECONDS", help=f"{what} (default: 300)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > 5 or not 0 < int(text) <= _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _job_id(text: str) -> str:
    from topoplace_hosts.slurm import running_job

    if not running_job.is_job_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a job, such as 12 or 12_3")
    return text


def _add_gres(which: Any) -> None:
    parser = options.command(
        which,
        "gres",
        "print gres.conf and the nodes' Gres for a topology",
        _gres,
        examples=["topoplace slurm gres cluster.json"],
    )
    options.add_topology(parser)
    parser.add_argument(
        "--device-file",
        default="/dev/nvidia{number}",
        metavar="PATH",
        help="device file of a GPU, with {number} on its machine, and {node} (default: %(default)s)",
    )
    options.add_json(parser)


def _add_file(which: Any) -> None:
    from topoplace_hosts.slurm import shipped

    parser = options.command(
        which,
        "file",
        "print a file for Slurm's hosts, such as job_submit.lua",
        _file,
        examples=["topoplace slurm file job_submit.lua"],
    )
    parser.add_argument("name", metavar="NAME", choices=shipped.NAMES, help=", ".join(shipped.NAMES))


def _place(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace_hosts import log
    from topoplace_hosts.journal import Journal
    from topoplace_hosts.slurm import metrics
    from topoplace_hosts.slurm.metrics import Figures
    from topoplace_hosts.slurm.placer import Placer, PlacerSettings, running

    with flags.named(interval="--interval", patience="--patience"):
        settings = PlacerSettings(interval=arguments.interval, patience=arguments.patience)
    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    topology = reading.topology(arguments)
    placers: list[Placer] = []
    if arguments.metrics:
        metrics.served(lambda: placers[-1].figures if placers else Figures(), arguments.metrics)
    fault = policies.installed.faults_named(policy, f"--policy = {arguments.policy!r}: ", only_its_code=True)
    with Journal(arguments.journal) as journal, fault:
        _require_slurm("squeue", "sinfo", "scontrol")
        running.run(
            lambda: Placer(topology, policy, journal, settings=settings, write_log=log.to_stderr),
            interval_s=settings.interval,
            alive=running.alive_file(arguments.journal),
            write_log=log.to_stderr,
            started=placers.append,
        )


def _launch(arguments: argparse.Namespace) -> None:
    import os

    from topoplace_hosts.slurm import running_job
    from topoplace_hosts.slurm.client.commands import SlurmCommands

    job = arguments.job or os.environ.get("SLURM_JOB_ID", "")
    if not job:
        raise ValueError("--job is missing: SLURM_JOB_ID is not set, as this does not run inside a job")
    topology = reading.topology(arguments)
    folder = launch_files.folder(arguments)
    _require_slurm("squeue", "scontrol")
    placement = running_job.placement_of(SlurmCommands(), job, topology)
    if folder is not None:
        launch_files.write(placement, folder, arguments)


def _require_slurm(*programs: str) -> None:
    import shutil

    if missing := [name for name in programs if shutil.which(name) is None]:
        raise ValueError(f"this host has no {', '.join(missing)}: run this where Slurm's commands are")


def _release(arguments: argparse.Namespace) -> None:
    import time

    from topoplace_hosts import log
    from topoplace_hosts.slurm.client.commands import SlurmCommands
    from topoplace_hosts.slurm.fallback import release_waiting
    from topoplace_hosts.slurm.placer import PlacerSettings, running

    with flags.named(patience="--patience"):
        patience = PlacerSettings(patience=arguments.patience).patience
    alive = running.alive_file(arguments.journal)
    count = release_waiting(
        SlurmCommands(), alive, patience_s=patience, now=time.time(), write_log=log.to_stderr
    )
    if arguments.json:
        writing.as_json({"released": count})
    else:
        print(f"{count} jobs given back to Slurm")


def _gres(arguments: argparse.Namespace) -> None:
    from topoplace.discovery.text.host_list import folded
    from topoplace_hosts.slurm import gres

    topology = reading.topology(arguments)
    with flags.named(device_file="--device-file"):
        text = gres.gres_conf(topology, device_file=arguments.device_file)
    if arguments.json:
        writing.as_json({"gres_conf": text, "node_gres": gres.node_gres(topology)})
        return
    print("# gres.conf: a type for each device", text, sep="\n")
    print("# slurm.conf: add to the lines of these nodes")
    by_gres: dict[str, list[str]] = {}
    for node, held in gres.node_gres(topology).items():
        by_gres.setdefault(held, []).append(node)
    for held, nodes in by_gres.items():
        print(f"# NodeName={folded(nodes)} Gres={held}")


def _file(arguments: argparse.Namespace) -> None:
    from topoplace_hosts.slurm import shipped

    print(shipped.text(arguments.name), end="")
