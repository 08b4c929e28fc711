"""Arguments that several subcommands of `topoplace kubernetes` have, and the values that they give."""

from __future__ import annotations

import argparse
import re
import signal
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topoplace_hosts.kubernetes.client.access import Access

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """Add --kubeconfig, which `access` reads."""
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the API server (default: as a pod of the cluster)"
    )


def access(arguments: argparse.Namespace) -> Access:
    """Return the access to the API server; KubernetesError names --kubeconfig if that file cannot be used."""
    from topoplace.errors import KubernetesError
    from topoplace_hosts.kubernetes.client import access

    if arguments.kubeconfig is None:
        return access.in_cluster()
    try:
        return access.from_kubeconfig(arguments.kubeconfig)
    except KubernetesError as error:
        raise KubernetesError(f"--kubeconfig: {error}") from None


def add_namespace(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --namespace, which `namespace` reads; `what` says in the help what the namespace holds."""
    parser.add_argument("--namespace", metavar="NAME", help=f"{what} (default: topoplace)")


def namespace(arguments: argparse.Namespace) -> str:
    """Return the namespace of the machines' ConfigMaps; ValueError if it cannot be the name of one."""
    from topoplace_hosts.kubernetes.machines import NAMESPACE
    from topoplace_hosts.kubernetes.machines.texts import checked_namespace

    return NAMESPACE if arguments.namespace is None else checked_namespace(arguments.namespace, "--namespace")


def lease(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the namespace and the name in --lease; ValueError if one is missing."""
    from topoplace import _checks

    space, _, name = arguments.lease.partition("/")
    if not (_NAME.fullmatch(space) and _NAME.fullmatch(name)):
        raise ValueError(f"--lease = {_checks.shown(arguments.lease)} is not NAMESPACE/NAME")
    return space, name


def until_told() -> Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = Event()

    def end(*_: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop
