"""`topoplace kubernetes`: the programs that run in a Kubernetes cluster."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading
from topoplace_hosts.kubernetes.options import arguments as shared
from topoplace_hosts.kubernetes.options import label, resource_slices, serving

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy
    from topoplace.topology.topology import Topology
    from topoplace_hosts.kubernetes.client.access import Access
    from topoplace_hosts.kubernetes.device_plugin import Unhealthy
    from topoplace_hosts.kubernetes.extender import ExtenderServer
    from topoplace_hosts.kubernetes.metrics import PodFigures


_SIGNALS_S = 0.2
"""Seconds between a waiting program's checks for a signal to end."""


def add(commands: Any) -> None:
    """Add `topoplace kubernetes` to the command line, with its subcommands."""
    which = options.group(commands, "kubernetes", "choose GPUs for the pods of a Kubernetes cluster", "WHAT")
    _add_device_plugin(which)
    _add_scheduler(which)
    _add_extender(which)
    label.add(which)
    resource_slices.add(which)


def _add_device_plugin(which: Any) -> None:
    parser = options.command(
        which,
        "device-plugin",
        "serve the kubelet of this node, and prefer the best GPUs",
        _device_plugin,
        examples=["topoplace kubernetes device-plugin dgx-h100 --node gpu7 --passing cdi"],
    )
    options.add_host_machine(parser, "the node's")
    options.add_policy(parser, "policy that compares sets of GPUs")
    parser.add_argument(
        "--resource",
        default="nvidia.com/gpu",
        metavar="NAME",
        help="resource that pods ask for (default: %(default)s)",
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
        help="name of this node; pods then get the GPUs that `topoplace kubernetes scheduler` decided",
    )
    shared.add_kubeconfig(parser)


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
        "--journal", metavar="FILE", help="file that keeps decisions across a crash (default: none)"
    )
    parser.add_argument(
        "--reserve",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long the GPUs of pre-empted pods are kept for others (default: %(default)g)",
    )
    parser.add_argument(
        "--metrics", metavar="ADDRESS:PORT", help="serve GET /metrics at this address, for Prometheus"
    )
    parser.add_argument(
        "--lease",
        metavar="NAMESPACE/NAME",
        help="if there are several schedulers, the one that holds this Lease decides (default: there is only this one)",
    )
    serving.add_protection(parser)


def _scheduler(arguments: argparse.Namespace) -> None:
    import gc
    from contextlib import ExitStack

    from topoplace import _checks, policies
    from topoplace_hosts import log
    from topoplace_hosts.journal import Journal
    from topoplace_hosts.kubernetes.metrics import PodFigures
    from topoplace_hosts.kubernetes.scheduler import Scheduler

    if arguments.lease is not None:
        shared.lease(arguments)
    with flags.named(reserve="--reserve", name="--name"):
        reserve_s = _checks.positive(arguments.reserve, "reserve", ValueError)
        name = _checks.text(arguments.name, "name", ValueError)
    resource, topology, policy = _cluster_and_policy(arguments)
    figures = PodFigures() if arguments.metrics is not None else None
    serve = _metrics_server(arguments, figures)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(arguments.journal)) if arguments.journal else None
        reached = shared.access(arguments)

        def work(machines: Topology, stop: Event) -> None:
            gc.unfreeze()
            with policies.installed.faults_named(
                policy, f"--policy = {arguments.policy!r}: ", only_its_code=True
            ):
                scheduler = Scheduler(
                    machines,
                    policy,
                    reached,
                    name=name,
                    gpu_resource=resource,
                    journal=journal,
                    reserve_s=reserve_s,
                    figures=figures,
                    write_log=log.to_stderr,
                )
                scheduler.run(stop, gc.freeze)  # what was listed stays: collections need not look at it

        if serve is not None:
            log.to_stderr("metrics", port=stack.enter_context(serve()).port)
        _work_on(topology, work, reached, arguments)


def _metrics_server(
    arguments: argparse.Namespace, figures: PodFigures | None
) -> Callable[[], ExtenderServer] | None:
    """Return what makes the server of the metrics; None without --metrics."""
    from functools import partial

    from topoplace_hosts import metrics
    from topoplace_hosts.kubernetes.extender import ExtenderServer
    from topoplace_hosts.kubernetes.extender.server import check_host
    from topoplace_hosts.kubernetes.metrics import SCHEDULER

    tls, token = serving.tls(arguments), serving.token(arguments)
    if figures is None:
        for flag, value in (("--tls", tls), ("--token-file", token)):
            if value:
                raise ValueError(f"{flag} has an effect only with --metrics")
        return None
    host, port = serving.listened(arguments.metrics, "--metrics")
    with flags.named(host="--metrics"):
        check_host(host, tls, token)
    pages = {"/metrics": metrics.page(lambda: figures, SCHEDULER)}
    return partial(ExtenderServer, {}, host, port, tls=tls, token=token, pages=pages)


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
    serving.add_protection(parser)
    parser.add_argument(
        "--metrics", action="store_true", help="also answer GET /metrics there, for Prometheus"
    )


def _extender(arguments: argparse.Namespace) -> None:
    from threading import Thread

    from topoplace.errors import KubernetesError
    from topoplace_hosts import log, metrics
    from topoplace_hosts.kubernetes.extender import ExtenderServer, RunningExtender
    from topoplace_hosts.kubernetes.extender.server import Page, check_host, most_bytes
    from topoplace_hosts.kubernetes.metrics import EXTENDER, PodFigures

    host, port = serving.listened(arguments.listen, "--listen")
    tls, token = serving.tls(arguments), serving.token(arguments)
    with flags.named(host="--listen"):
        check_host(host, tls, token)
    resource, topology, policy = _cluster_and_policy(arguments)
    figures, current = PodFigures(), list[RunningExtender]()
    pages: dict[str, Page] = {}
    if arguments.metrics:
        pages["/metrics"] = metrics.page(lambda: current[-1].figures(), EXTENDER)
    reached = shared.access(arguments)

    def work(machines: Topology, stop: Event) -> None:
        extender = RunningExtender(
            machines, policy, reached, gpu_resource=resource, figures=figures, write_log=log.to_stderr
        )
        current[:] = [extender]
        ready = Event()
        follower = Thread(target=extender.follow, args=(stop, ready))
        follower.start()
        log.to_stderr("listing nodes and pods")
        try:
            while not ready.wait(0.1) and not stop.is_set():
                pass
            if ready.is_set():
                with ExtenderServer(
                    extender.answers(),
                    host,
                    port,
                    tls=tls,
                    token=token,
                    most_bytes=most_bytes(machines.num_machines),
                    pages=pages,
                ) as server:
                    log.to_stderr("ready", port=server.port)
                    while not stop.wait(_SIGNALS_S):  # a signal for another thread does not wake this one
                        if not follower.is_alive():
                            raise KubernetesError(
                                "the thread that follows the API server stopped; its error is above"
                            )
        finally:
            stop.set()
            follower.join()
            extender.finish()

    _work_on(topology, work, reached, arguments)


def _add_cluster_and_policy(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a program that decides for a whole cluster; `_cluster_and_policy` reads them."""
    parser.add_argument(
        "topology",
        metavar="TOPO",
        nargs="?",
        help="the machines, with the names of their nodes, as for `topoplace show` "
        "(default: what `topoplace kubernetes label` wrote about each node)",
    )
    options.add_assumptions(parser)
    shared.add_namespace(parser, "where nodes describe their machines")
    options.add_policy(parser)
    shared.add_kubeconfig(parser)
    parser.add_argument(
        "--resource",
        default="nvidia.com/gpu",
        metavar="NAME",
        help="resource that counts GPUs (default: %(default)s)",
    )


def _cluster_and_policy(arguments: argparse.Namespace) -> tuple[str, Topology | None, Policy]:
    """Return the resource that counts GPUs, the machines of TOPO or None, and the policy that decides."""
    from topoplace import policies
    from topoplace_hosts.kubernetes.objects.requests import checked_resource

    with flags.named(resource="--resource"):
        resource = checked_resource(arguments.resource, "resource")
    topology = None
    if arguments.topology is not None:
        if arguments.namespace is not None:
            raise ValueError("--namespace has an effect only without TOPO")
        topology = reading.topology(arguments)
    for flag in ("--gpu-model", "--assume-no-nvlink", "--assume"):
        if topology is None and getattr(arguments, flag[2:].replace("-", "_")):
            raise ValueError(f"{flag} has an effect only with TOPO")
    shared.namespace(arguments)
    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    return resource, topology, policy


def _work_on(
    topology: Topology | None,
    work: Callable[[Topology, Event], None],
    reached: Access,
    arguments: argparse.Namespace,
) -> None:
    """Let `work` run until this program is told to end; again if the machines change, unless they are those of TOPO."""
    from topoplace_hosts import log
    from topoplace_hosts.kubernetes.client.lease import Leadership
    from topoplace_hosts.kubernetes.machines import FollowedMachines

    def lead(stop: Event) -> None:
        if topology is not None:
            work(topology, stop)
        else:
            machines = FollowedMachines(reached, shared.namespace(arguments), write_log=log.to_stderr)
            machines.run(work, stop)

    stop = shared.until_told()
    if getattr(arguments, "lease", None) is None:
        lead(stop)
    else:
        namespace, name = shared.lease(arguments)
        Leadership(reached, namespace, name, write_log=log.to_stderr).run(lead, stop)


def _device_plugin(arguments: argparse.Namespace) -> None:
    from topoplace.errors import require_package

    require_package("grpc", "topoplace kubernetes device-plugin")
    from topoplace_hosts.kubernetes.device_plugin import DevicePlugin

    if arguments.node == "":
        raise ValueError("--node is empty")
    if arguments.kubeconfig is not None and arguments.node is None:
        raise ValueError("--kubeconfig has an effect only with --node")
    reached = shared.access(arguments) if arguments.node else None
    named = {"directory": "--directory", "endpoint": "--endpoint", "resource_name": "--resource"}
    with flags.named(name="--policy", policy="--policy", topology="TOPO", **named):
        plugin = DevicePlugin(
            reading.host_machine(arguments),
            policy=arguments.policy,
            resource_name=arguments.resource,
            passing=arguments.passing,
            directory=arguments.directory,
            endpoint=arguments.endpoint,
            node=arguments.node or "",
            access=reached,
        )
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    plugin.run(shared.until_told(), _health())


def _health() -> Unhealthy:
    """Return what tells the unhealthy GPUs; where NVML cannot be used, say so and let nothing be unhealthy."""
    from topoplace.discovery.live.programs import NotHereError
    from topoplace_hosts.kubernetes.device_plugin.nvml_health import NvmlHealth

    try:
        return NvmlHealth()
    except NotHereError as error:
        print(f"GPUs that break are not noticed: {error}", file=sys.stderr)
        return tuple
