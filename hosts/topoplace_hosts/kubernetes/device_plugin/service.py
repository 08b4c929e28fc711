"""The device plugin as a gRPC service: each method translates a request, asks, and translates the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.device_plugin import messages
from topoplace_hosts.kubernetes.rpc import grpc

if TYPE_CHECKING:
    from topoplace_hosts.kubernetes.device_plugin.decided import DecidedPods
    from topoplace_hosts.kubernetes.device_plugin.device_list import DeviceList
    from topoplace_hosts.kubernetes.device_plugin.preferred import PreferredAllocation

_log = logging.getLogger(__name__)

Passing = Literal["environment", "cdi"]
"""How a container gets its GPUs: NVIDIA_VISIBLE_DEVICES, which NVIDIA's container runtime reads, or CDI names."""


class DevicePluginService:
    """The methods that the kubelet calls.

    resource_name: also the kind of the CDI names. passing: how a container gets its GPUs. If the GPUs have UUIDs,
    CUDA_VISIBLE_DEVICES lists them in the order of the tasks.
    """

    def __init__(
        self,
        preferred: PreferredAllocation,
        devices: DeviceList,
        resource_name: str,
        passing: Passing,
        decided: DecidedPods | None = None,
    ) -> None:
        """decided: the scheduler's decisions for this node, which take precedence; None without them."""
        self._preferred = preferred
        self._decided = decided
        self._devices = devices
        self._resource_name = resource_name
        self._passing = passing
        self._has_uuids = all(gpu.uuid for gpu in preferred.topology.gpus)

    def handlers(self) -> Any:
        """Return the methods for a gRPC server."""
        unary: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
            "GetDevicePluginOptions": (self._options, messages.Empty),
            "GetPreferredAllocation": (self._preferred_allocation, messages.PreferredAllocationRequest),
            "Allocate": (self._allocate, messages.AllocateRequest),
            "PreStartContainer": (self._pre_start, messages.PreStartContainerRequest),
        }
        methods = {
            name: grpc.unary_unary_rpc_method_handler(method, request.FromString, _serialised)
            for name, (method, request) in unary.items()
        }
        methods["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(
            self._watch, messages.Empty.FromString, _serialised
        )
        return grpc.method_handlers_generic_handler(messages.DEVICE_PLUGIN, methods)

    # ---- methods ---------------------------------------------------------------------------------------------

    def _options(self, _: Any, __: Any) -> Any:
        return OPTIONS

    def _watch(self, _: Any, context: Any) -> Iterator[Any]:
        context.add_callback(self._devices.wake)
        return self._devices.watch(context.is_active)

    def _preferred_allocation(self, request: Any, _: Any) -> Any:
        """Answer without devices where the question cannot be answered: after an error, the pod would not start."""
        response = messages.PreferredAllocationResponse()
        for container in request.container_requests:
            available, required = container.available_deviceIDs, container.must_include_deviceIDs
            try:
                size = container.allocation_size
                chosen = self._decided.choose(available, required, size) if self._decided else None
                if chosen is None:
                    chosen = self._preferred.choose(available, required, size)
            except ValueError as error:
                _log.warning("no preference: %s", error)
                chosen = []
            response.container_responses.add(deviceIDs=chosen)
        return response

    def _allocate(self, request: Any, context: Any) -> Any:
        response = messages.AllocateResponse()
        for container in request.container_requests:
            devices: Sequence[str] = container.devices_ids
            if unknown := [one for one in devices if not self._preferred.knows(one)]:
                context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT, f"device {unknown[0]!r} is not one of this node"
                )
            self._refuse_others(devices, context)
            self._pass_to(response.container_responses.add(), self._in_order(devices))
        return response

    def _refuse_others(self, devices: Sequence[str], context: Any) -> None:
        """Refuse devices that the scheduler has given to another pod: the pod then fails, instead of both."""
        if self._decided is None:
            return
        try:
            reason = self._decided.why_not(devices)
        except KubernetesError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, f"what the scheduler decided is not known: {error}")
        else:
            if reason:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, reason)

    def _pre_start(self, _: Any, __: Any) -> Any:
        return messages.PreStartContainerResponse()

    # ---- inside ----------------------------------------------------------------------------------------------

    def _in_order(self, devices: Sequence[str]) -> list[str]:
        """Return the GPUs of the devices, in the order of tasks if each device is its own GPU."""
        gpus = [self._preferred.gpu_name(device) for device in devices]
        if len(set(gpus)) < len(gpus):
            return sorted(set(gpus))
        try:
            if self._decided and (chosen := self._decided.choose(gpus, gpus, len(gpus))):
                return chosen
            return self._preferred.choose(gpus, gpus, len(gpus))
        except ValueError as error:
            _log.warning("GPUs in the order of the kubelet: %s", error)
            return gpus

    def _pass_to(self, container: Any, gpus: Sequence[str]) -> None:
        if self._passing == "cdi":
            for gpu in gpus:
                container.cdi_devices.add(name=f"{self._resource_name}={gpu}")
        else:
            container.envs["NVIDIA_VISIBLE_DEVICES"] = ",".join(gpus)
        if self._has_uuids:
            container.envs["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)


OPTIONS: Any = messages.DevicePluginOptions(get_preferred_allocation_available=True)


def _serialised(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
