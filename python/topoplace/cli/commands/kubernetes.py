"""`topoplace kubernetes`: the programs that run in a Kubernetes cluster."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from threading import Event
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading

if TYPE_CHECKING:
    import ssl

    from topoplace.engine.policy import Policy
    from topoplace.integrations.kubernetes.client.access import Access
    from topoplace.integrations.kubernetes.device_plugin import Unhealthy
    from topoplace.topology.topology import Topology


_SIGNALS_S = 0.2
"""How often a program that waits looks whether it was told to end."""


def add(commands: Any) -> None:
    """Add `topoplace kubernetes` to the command line, with its subcommands."""
    which = options.group(commands, "kubernetes", "choose GPUs for the pods of a Kubernetes cluster", "WHAT")
    _add_device_plugin(which)
    _add_scheduler(which)
    _add_extender(which)


def _add_device_plugin(which: Any) -> None:
    parser = options.command(
        which,
        "device-plugin",
        "serve the kubelet of this node, and prefer the best GPUs",
        _device_plugin,
        examples=["topoplace kubernetes device-plugin dgx-h100 --node gpu7 --passing cdi"],
    )
    parser.add_argument(
        "topology",
        metavar="TOPO",
        nargs="?",
        help="the node's machine, as for `topoplace show` (default: what is found on this host)",
    )
    options.add_assumptions(parser)
    options.add_policy(parser, what="policy that compares sets of GPUs", default="collective")
    parser.add_argument(
        "--resource",
        default="nvidia.com/gpu",
        metavar="NAME",
        help="what pods ask for (default: %(default)s)",
    )
    parser.add_argument(
        "--passing",
        default="environment",
        choices=("environment", "cdi"),
        help="how containers get GPUs: NVIDIA_VISIBLE_DEVICES or CDI names (default: %(default)s)",
    )
    parser.add_argument(
        "--directory",
        default="/var/lib/kubelet/device-plugins",
        metavar="DIR",
        help="where the kubelet's socket is (default: %(default)s)",
    )
    parser.add_argument(
        "--endpoint",
        default="topoplace.sock",
        metavar="NAME",
        help="the plugin's socket in DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="name of this node: give pods what `topoplace kubernetes scheduler` decided",
    )
    _add_kubeconfig(parser)


def _add_scheduler(which: Any) -> None:
    parser = options.command(
        which,
        "scheduler",
        "give pods with schedulerName topoplace a node and exact GPUs",
        _scheduler,
        examples=["topoplace kubernetes scheduler cluster.json --journal decisions.journal"],
    )
    _add_cluster_and_policy(parser)
    parser.add_argument(
        "--name", default="topoplace", metavar="NAME", help="schedulerName of its pods (default: %(default)s)"
    )
    parser.add_argument(
        "--journal", metavar="FILE", help="where decisions are kept over a crash (default: nowhere)"
    )
    parser.add_argument(
        "--reserve",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long the GPUs of pre-empted pods are kept for others (default: %(default)g)",
    )


def _scheduler(arguments: argparse.Namespace) -> None:
    import gc
    from contextlib import ExitStack

    from topoplace import _checks
    from topoplace.integrations import log
    from topoplace.integrations.kubernetes.scheduler import Scheduler
    from topoplace.state import Journal

    with flags.named(reserve="--reserve", name="--name"):
        reserve_s = _checks.positive(arguments.reserve, "reserve", ValueError)
        name = _checks.text(arguments.name, "name", ValueError)
    resource, topology, policy = _cluster_and_policy(arguments)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(arguments.journal)) if arguments.journal else None
        reached = _access(arguments)
        scheduler = Scheduler(
            topology,
            policy,
            reached,
            name=name,
            gpu_resource=resource,
            journal=journal,
            reserve_s=reserve_s,
            write_log=log.to_stderr,
        )
        scheduler.run(_until_told(), gc.freeze)  # what was listed stays: collections need not look at it


def _add_extender(which: Any) -> None:
    parser = options.command(
        which,
        "extender",
        "answer kube-scheduler over HTTP: filter, prioritize, bind to exact GPUs",
        _extender,
        examples=[
            "topoplace kubernetes extender cluster.json --kubeconfig admin.conf",
            "topoplace kubernetes extender cluster.json --listen 0.0.0.0:8888 --tls server.crt,server.key "
            "--client-ca ca.crt",
        ],
    )
    _add_cluster_and_policy(parser)
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8888",
        metavar="ADDRESS:PORT",
        help="where to answer (default: %(default)s)",
    )
    parser.add_argument("--tls", metavar="CERT,KEY", help="PEM files of the server's certificate and its key")
    parser.add_argument("--client-ca", metavar="FILE", help="clients need a certificate of this authority")
    parser.add_argument("--token-file", metavar="FILE", help="requests must bear the token in this file")


def _extender(arguments: argparse.Namespace) -> None:
    from threading import Thread

    from topoplace.integrations import log
    from topoplace.integrations.kubernetes.extender import ExtenderServer, RunningExtender
    from topoplace.integrations.kubernetes.extender.server import check_host

    host, port = _listened(arguments.listen)
    tls, token = _tls(arguments), _token(arguments.token_file)
    with flags.named(host="--listen"):
        check_host(host, tls, token)
    resource, topology, policy = _cluster_and_policy(arguments)
    extender = RunningExtender(
        topology, policy, _access(arguments), gpu_resource=resource, write_log=log.to_stderr
    )
    stop, ready = _until_told(), Event()
    follower = Thread(target=extender.follow, args=(stop, ready))
    follower.start()
    log.to_stderr("listing nodes and pods")
    try:
        while not ready.wait(0.1) and not stop.is_set():
            pass
        if ready.is_set():
            with ExtenderServer(extender.answers(), host, port, tls=tls, token=token) as server:
                log.to_stderr("ready", port=server.port)
                while not stop.wait(_SIGNALS_S):
                    pass  # a signal that another thread gets wakes nobody
    finally:
        stop.set()
        follower.join()


def _listened(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 1 << 16 and host):
        raise ValueError(f"--listen = {text[:60]!r} is not an address and a port, as in 127.0.0.1:8888")
    return host.strip("[]"), int(port)


def _tls(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    from topoplace.integrations.kubernetes.extender.running import server_tls

    if arguments.tls is None:
        if arguments.client_ca is not None:
            raise ValueError("--client-ca has an effect only with --tls")
        return None
    certificate, comma, key = arguments.tls.partition(",")
    if not comma:
        raise ValueError(f"--tls = {arguments.tls[:60]!r} is not a certificate and a key, as in a.crt,a.key")
    try:
        return server_tls(certificate, key, arguments.client_ca)
    except OSError as error:
        raise ValueError(f"--tls or --client-ca cannot be used: {error}") from None


def _token(path: str | None) -> str:
    if path is None:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read(1 << 16).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--token-file: {error}") from None
    if not token or not token.isascii():
        raise ValueError(f"--token-file: {path} has no token of ASCII characters")
    return token


def _add_cluster_and_policy(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a program that decides for a whole cluster; `_cluster_and_policy` reads them."""
    parser.add_argument(
        "topology", metavar="TOPO", help="the machines, as for `topoplace show`; they have the names of nodes"
    )
    options.add_assumptions(parser)
    options.add_policy(parser, what="policy that decides", default="topo-aware-p")
    _add_kubeconfig(parser)
    parser.add_argument(
        "--resource", default="nvidia.com/gpu", metavar="NAME", help="what counts GPUs (default: %(default)s)"
    )


def _cluster_and_policy(arguments: argparse.Namespace) -> tuple[str, Topology, Policy]:
    """Return the resource that counts GPUs, the machines, and the policy that decides."""
    from topoplace import policies
    from topoplace.integrations.kubernetes.objects.requests import checked_resource

    with flags.named(resource="--resource"):
        resource = checked_resource(arguments.resource, "resource")
    topology = reading.topology(arguments)
    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    return resource, topology, policy


def _add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the API server (default: as a pod of the cluster)"
    )


def _access(arguments: argparse.Namespace) -> Access:
    from topoplace.integrations.kubernetes.client import access

    config = arguments.kubeconfig
    return access.in_cluster() if config is None else access.from_kubeconfig(config)


def _until_told() -> Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = Event()

    def end(*_: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


def _device_plugin(arguments: argparse.Namespace) -> None:
    from topoplace.errors import require_package

    require_package("grpc", "topoplace kubernetes device-plugin")
    from topoplace.integrations.kubernetes.device_plugin import DevicePlugin

    if arguments.node == "":
        raise ValueError("--node is empty")
    if arguments.kubeconfig is not None and arguments.node is None:
        raise ValueError("--kubeconfig has an effect only with --node")
    reached = _access(arguments) if arguments.node else None
    named = {"directory": "--directory", "endpoint": "--endpoint", "resource_name": "--resource"}
    with flags.named(name="--policy", policy="--policy", topology="TOPO", **named):
        plugin = DevicePlugin(
            _topology(arguments),
            policy=arguments.policy,
            resource_name=arguments.resource,
            passing=arguments.passing,
            directory=arguments.directory,
            endpoint=arguments.endpoint,
            node=arguments.node or "",
            access=reached,
        )
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    plugin.run(_until_told(), _health())


def _topology(arguments: argparse.Namespace) -> Topology:
    from topoplace import Topology

    return Topology.discover() if arguments.topology is None else reading.topology(arguments)


def _health() -> Unhealthy:
    """Return what tells the unhealthy GPUs; where NVML cannot be used, say so and let nothing be unhealthy."""
    from topoplace.discovery.live.programs import NotHereError
    from topoplace.integrations.kubernetes.device_plugin.nvml_health import NvmlHealth

    try:
        return NvmlHealth()
    except NotHereError as error:
        print(f"GPUs that break are not noticed: {error}", file=sys.stderr)
        return tuple
