"""The kubelet's side of device plugins, for tests of plugins without a node."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

from topoplace_hosts.kubernetes.device_plugin import messages
from topoplace_hosts.kubernetes.rpc import ALONE, grpc


class Registered(NamedTuple):
    """The data with which a plugin registered."""

    endpoint: str
    resource_name: str
    prefers: bool
    """True if the plugin is asked for preferred allocations."""


class Kubelet:
    """A kubelet that plugins register with, in a `with` block.

    directory: the folder of the sockets. Like a real kubelet, this one deletes all sockets there when it starts.
    """

    def __init__(self, directory: Path | str) -> None:
        self._directory = Path(directory)
        self.registrations: Queue[Registered] = Queue()
        """The accepted registrations, oldest first."""

    def __enter__(self) -> Kubelet:
        for entry in self._directory.iterdir():
            if entry.is_socket():
                entry.unlink()
        self._server = grpc.server(ThreadPoolExecutor(2))
        register = grpc.unary_unary_rpc_method_handler(
            self._register, messages.RegisterRequest.FromString, messages.Empty.SerializeToString
        )
        service = messages.REGISTER.split("/")[1]
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Register": register}),)
        )
        self._server.add_insecure_port(f"unix://{self._directory / 'kubelet.sock'}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and leave the socket where it is, as a kubelet that dies does."""
        self._server.stop(None).wait()

    def _register(self, request: Any, context: Any) -> Any:
        if request.version != messages.VERSION:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"version {request.version!r} is not supported")
        options = request.options
        self.registrations.put(
            Registered(request.endpoint, request.resource_name, options.get_preferred_allocation_available)
        )
        return messages.Empty()

    @contextmanager
    def plugin(self, endpoint: str) -> Generator[PluginCalls]:
        """Connect to the plugin at a socket of the directory, for the length of a `with` block."""
        with grpc.insecure_channel(f"unix://{self._directory / endpoint}", ALONE) as channel:
            yield PluginCalls(channel)


class PluginCalls:
    """The calls of a kubelet to one plugin; grpc.RpcError if the plugin refuses."""

    def __init__(self, channel: Any) -> None:
        def unary(name: str, request: Any, response: Any) -> Any:
            path = f"/{messages.DEVICE_PLUGIN}/{name}"
            return channel.unary_unary(path, request.SerializeToString, response.FromString)

        self._options = unary("GetDevicePluginOptions", messages.Empty, messages.DevicePluginOptions)
        self._preferred = unary(
            "GetPreferredAllocation",
            messages.PreferredAllocationRequest,
            messages.PreferredAllocationResponse,
        )
        self._allocate = unary("Allocate", messages.AllocateRequest, messages.AllocateResponse)
        self._watch = channel.unary_stream(
            f"/{messages.DEVICE_PLUGIN}/ListAndWatch",
            messages.Empty.SerializeToString,
            messages.ListAndWatchResponse.FromString,
        )

    def prefers(self) -> bool:
        """Return True if the plugin accepts requests for preferred allocations."""
        return bool(self._options(messages.Empty()).get_preferred_allocation_available)

    def lists(self) -> Iterator[dict[str, tuple[bool, int | None]]]:
        """Yield the health and NUMA node of each device, whenever the plugin sends them."""
        for response in self._watch(messages.Empty()):
            yield {
                device.ID: (
                    device.health == messages.HEALTHY,
                    device.topology.nodes[0].ID if device.topology.nodes else None,
                )
                for device in response.devices
            }

    def preferred(self, *containers: tuple[Sequence[str], Sequence[str], int]) -> list[list[str]]:
        """Return the devices that the plugin prefers for each container.

        containers: for each container, the available devices, the required devices, and their number.
        """
        request = messages.PreferredAllocationRequest()
        for available, required, size in containers:
            request.container_requests.add(
                available_deviceIDs=available, must_include_deviceIDs=required, allocation_size=size
            )
        return [list(one.deviceIDs) for one in self._preferred(request).container_responses]

    def allocate(self, *containers: Sequence[str]) -> list[Any]:
        """Return the plugin's instructions to the container runtime for each container with these devices."""
        request = messages.AllocateRequest()
        for devices in containers:
            request.container_requests.add(devices_ids=devices)
        return list(self._allocate(request).container_responses)
