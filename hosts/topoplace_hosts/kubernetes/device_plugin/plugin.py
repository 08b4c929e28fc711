"""The device plugin as a process: a server on a socket, registered with the kubelet and again after its restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from topoplace import _checks, policies
from topoplace_hosts.kubernetes.device_plugin import messages
from topoplace_hosts.kubernetes.device_plugin.decided import DecidedPods
from topoplace_hosts.kubernetes.device_plugin.device_list import DeviceList
from topoplace_hosts.kubernetes.device_plugin.preferred import PreferredAllocation
from topoplace_hosts.kubernetes.device_plugin.service import OPTIONS, DevicePluginService, Passing
from topoplace_hosts.kubernetes.objects.requests import checked_resource
from topoplace_hosts.kubernetes.rpc import ALONE, grpc

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy
    from topoplace.topology.topology import Topology
    from topoplace_hosts.kubernetes.client.access import Access

_log = logging.getLogger(__name__)

DIRECTORY: Final = Path("/var/lib/kubelet/device-plugins")
_KUBELET: Final = "kubelet.sock"
_THREADS: Final = 16
_MOST_CALLS: Final = 64
_POLL_SECONDS: Final = 0.25
_REGISTER_SECONDS: Final = 5.0


Unhealthy = Callable[[], Collection[str]]
"""Returns the names of devices that must not get containers now."""


def _none() -> Collection[str]:
    return ()


class DevicePlugin:
    """A device plugin of the kubelet (v1beta1) that says which GPUs a container should get.

    topology: the node's machine; its GPUs should have UUIDs. resource_name: what pods ask for. policy: see
    `PreferredAllocation`. passing: see `DevicePluginService`. directory: where the kubelet's socket is; the plugin's
    socket, `endpoint`, is next to it, and only its owner may open it. node, access: this node's name and access to the
    API server, if topoplace's scheduler decides for pods. The plugin then follows its decisions; see `DecidedPods`.
    ValueError names a wrong argument.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        resource_name: str = "nvidia.com/gpu",
        policy: Policy | str = policies.DEFAULT,
        passing: Passing = "environment",
        directory: Path | str = DIRECTORY,
        endpoint: str = "topoplace.sock",
        node: str = "",
        access: Access | None = None,
    ) -> None:
        if passing not in ("environment", "cdi"):
            raise ValueError(f"passing = {_checks.shown(passing)} is neither 'environment' nor 'cdi'")
        if "/" in endpoint or endpoint in ("", _KUBELET):
            raise ValueError(f"endpoint = {_checks.shown(endpoint)} is not the name of a socket of its own")
        checked_resource(resource_name, "resource_name")
        if not Path(directory).is_dir():
            raise ValueError(f"directory = {_checks.shown(str(directory))} is not a directory")
        preferred = PreferredAllocation(topology, policy)
        self._resource_name = resource_name
        self._socket = Path(directory) / endpoint
        self._kubelet = Path(directory) / _KUBELET
        self._devices = DeviceList(dict(zip(preferred.device_ids, topology.gpus, strict=True)))
        self._decided = DecidedPods(access, node, preferred.device_ids, resource_name) if access else None
        self._service = DevicePluginService(preferred, self._devices, resource_name, passing, self._decided)

    def run(self, stop: Event, unhealthy: Unhealthy = _none) -> None:
        """Serve the kubelet until `stop` is set; a plugin runs once.

        unhealthy: returns the devices that are broken now, in addition to those of the topology; called every 0.25
        seconds. The plugin registers when the kubelet's socket appears, and again when it is a new one. The kubelet
        deletes all sockets when it starts; the plugin then opens its own again. OSError if it cannot be opened.
        """
        server = self._started()
        registered: tuple[int, int] | None = None
        try:
            while not stop.wait(0.0 if registered is None else _POLL_SECONDS):
                if not self._socket.exists():
                    server.stop(None)
                    server, registered = self._started(), None
                kubelet = _identity(self._kubelet)
                if kubelet is not None and kubelet != registered and self._register():
                    registered = kubelet
                self._devices.set_unhealthy(unhealthy())
                if registered is None and stop.wait(_POLL_SECONDS):
                    return
        finally:
            self._devices.close()
            server.stop(1.0).wait()
            if self._decided:
                self._decided.close()
            self._socket.unlink(missing_ok=True)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _started(self) -> Any:
        """Return a server on the plugin's socket; a socket that an earlier process left behind is replaced."""
        self._socket.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_THREADS), maximum_concurrent_rpcs=_MOST_CALLS)
        server.add_generic_rpc_handlers((self._service.handlers(),))
        try:
            server.add_insecure_port(f"unix://{self._socket}")  # a socket, which its permissions protect
        except RuntimeError as error:
            raise OSError(f"{self._socket}: {error}") from None
        server.start()
        with suppress(FileNotFoundError):  # a kubelet that starts right now deletes it, and `run` sees that
            self._socket.chmod(0o600)
        return server

    def _register(self) -> bool:
        """Tell the kubelet about this plugin; return False if it does not answer."""
        request = messages.RegisterRequest(
            version=messages.VERSION,
            endpoint=self._socket.name,
            resource_name=self._resource_name,
            options=OPTIONS,
        )
        with grpc.insecure_channel(f"unix://{self._kubelet}", ALONE) as channel:
            register = channel.unary_unary(
                messages.REGISTER, messages.RegisterRequest.SerializeToString, messages.Empty.FromString
            )
            try:
                register(request, timeout=_REGISTER_SECONDS)
            except grpc.RpcError as error:
                _log.warning("the kubelet did not accept %s: %s", self._resource_name, error)
                return False
        _log.info("registered %s with the kubelet", self._resource_name)
        return True


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from a later one of the same name; None if there is none."""
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_ino, known.st_ctime_ns
