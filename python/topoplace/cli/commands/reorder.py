"""`topoplace reorder` prints hosts that somebody else chose in the order in which a job communicates least."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, job_options, options, reading, writing

if TYPE_CHECKING:
    from topoplace.policies.host_order import HostOrder

_TIMEOUT_S = 10.0


def add(commands: Any) -> None:
    """Add `topoplace reorder` and its arguments to the command line."""
    parser = options.command(
        commands,
        "reorder",
        "print given hosts in the best order of ranks, for a job script",
        _run,
        examples=[
            "topoplace reorder cluster.json --hosts gpu0,gpu2,gpu1,gpu3 --parallel tensor=8,data=2,pipeline=2",
            "topoplace reorder cluster.json --hosts gpu[0-3] --pattern ring > hosts.txt",
        ],
    )
    options.add_topology(parser)
    parser.add_argument(
        "--hosts",
        metavar="HOSTS",
        required=True,
        help="the hosts in the order given: names with commas, a list of Slurm such as node[1-4], a file, or - for "
        "standard input, with a host on each line; what stands behind its name, and further lines of it, do not count",
    )
    job_options.add_job(parser, size="all of the hosts")
    options.add_timeout(parser, "take the best order so far", default_s=_TIMEOUT_S)
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace.policies.host_order import reorder

    topology = reading.topology(arguments)
    hosts = _hosts(arguments.hosts)
    size = sum(len(topology.gpus_of.get(host, ())) for host in hosts) or 1  # `reorder` names an unknown host
    job = job_options.job(arguments, default_size=str(size))
    with flags.named(hosts="--hosts", job="the job", timeout="--timeout"), Progress("searching"):
        found = reorder(hosts, topology, job, timeout=arguments.timeout)
    if arguments.json:
        writing.as_json({"topology": topology.name, "hosts": found.hosts, **_facts(found)})
    else:
        print(*found.hosts, sep="\n")
        print(_gain(found, is_same=list(found.hosts) == hosts), file=sys.stderr)
    return 0


def _hosts(source: str) -> list[str]:
    """Return the names that a list states, or the lines of a file."""
    from topoplace.discovery.text import host_list

    if source != "-" and not os.path.exists(source):
        return host_list.expanded(source, "--hosts")
    with reading.errors_of(source):
        lines = (line.partition("#")[0].split() for line in reading.text(source).splitlines())
        names = [name for words in lines if words for name in host_list.expanded(words[0], "hosts")]
        return list(dict.fromkeys(names))


def _facts(found: HostOrder) -> dict[str, Any]:
    return {
        "gpus": found.placement.gpus,
        "before": found.before,
        "time": found.time,
        "bound": found.bound,
        "optimal": found.optimal,
    }


def _gain(found: HostOrder, *, is_same: bool) -> str:
    proof = "proven best" if found.optimal else f"none takes less than {found.bound:.3g} s"
    seconds = f"a step communicates {found.time:.3g} s"
    if is_same:
        return f"{seconds} in the order given ({proof})"
    if found.time < found.before:
        return f"{seconds}, {found.before:.3g} s in the order given ({proof})"
    return f"{seconds} ({proof}); the order given breaks a required group"
