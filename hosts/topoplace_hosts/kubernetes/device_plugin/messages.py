"""The messages and methods of device plugins, as classes and paths for gRPC.

They are in a descriptor pool of their own, so that another module with the kubelet's messages does no harm.
"""

from __future__ import annotations

from importlib import import_module, resources
from typing import Any, Final

VERSION: Final = "v1beta1"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
REGISTER: Final = f"/{VERSION}.Registration/Register"
DEVICE_PLUGIN: Final = f"{VERSION}.DevicePlugin"


def _messages() -> dict[str, Any]:
    protobuf: Any = import_module("google.protobuf")
    for name in ("descriptor_pb2", "descriptor_pool", "message_factory"):
        import_module(f"google.protobuf.{name}")
    pool = protobuf.descriptor_pool.DescriptorPool()
    serialised = (
        resources.files("topoplace_hosts.kubernetes.device_plugin")
        .joinpath("device_plugin.binpb")
        .read_bytes()
    )
    files = protobuf.descriptor_pb2.FileDescriptorSet.FromString(serialised).file
    for file in files:
        pool.Add(file)
    return {
        message.name: protobuf.message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{file.package}.{message.name}")
        )
        for file in files
        for message in file.message_type
    }


_BY_NAME: Final = _messages()

AllocateRequest: Any = _BY_NAME["AllocateRequest"]
AllocateResponse: Any = _BY_NAME["AllocateResponse"]
Device: Any = _BY_NAME["Device"]
DevicePluginOptions: Any = _BY_NAME["DevicePluginOptions"]
Empty: Any = _BY_NAME["Empty"]
ListAndWatchResponse: Any = _BY_NAME["ListAndWatchResponse"]
PreferredAllocationRequest: Any = _BY_NAME["PreferredAllocationRequest"]
PreferredAllocationResponse: Any = _BY_NAME["PreferredAllocationResponse"]
PreStartContainerRequest: Any = _BY_NAME["PreStartContainerRequest"]
PreStartContainerResponse: Any = _BY_NAME["PreStartContainerResponse"]
RegisterRequest: Any = _BY_NAME["RegisterRequest"]
