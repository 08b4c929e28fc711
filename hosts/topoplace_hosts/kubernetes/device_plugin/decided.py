"""The GPUs that the scheduler has given to the pods of this node, as their annotations say."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from threading import Lock
from typing import Any
from urllib.parse import quote

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import Connection
from topoplace_hosts.kubernetes.objects.annotations import by_container
from topoplace_hosts.kubernetes.objects.fields import items, mapping
from topoplace_hosts.kubernetes.objects.pod import pod

_log = logging.getLogger(__name__)
_TIMEOUT_S = 5.0


class DecidedPods:
    """Answers the kubelet with what the scheduler decided, which is read from the API server each time.

    The kubelet does not say for which pod it asks. An answer is for the pod that was bound first, of those with a
    container that was given this many devices, all available. Two pods with equal requests at the same moment may swap
    their GPUs; no other pod gets these.
    """

    def __init__(
        self, access: Access, node: str, device_ids: Sequence[str], resource_name: str = "nvidia.com/gpu"
    ) -> None:
        """node: the name of this node. device_ids: the device of each GPU, by its number on the node."""
        self._connection = Connection(access, _TIMEOUT_S)
        self._path = f"/api/v1/pods?fieldSelector={quote(f'spec.nodeName={node}')}"
        self._device_ids = device_ids
        self._resource_name = resource_name
        self._lock = Lock()

    def choose(self, available: Collection[str], required: Collection[str], size: int) -> list[str] | None:
        """Return the devices, in task order, of the first container that fits the question; None if none does.

        KubernetesError if the API server does not answer.
        """
        for devices in self._sets():
            if len(devices) == size and set(required) <= set(devices) <= set(available):
                return devices
        return None

    def why_not(self, devices: Collection[str]) -> str:
        """Return why a container must not get these devices: one was decided for another pod; "" if it may.

        KubernetesError if the API server does not answer.
        """
        wanted = set(devices)
        sets = [set(one) for one in self._sets()]
        if wanted in sets:
            return ""
        taken = sorted(wanted & {device for one in sets for device in one})
        return f"device {taken[0]!r} was given to another pod by the scheduler" if taken else ""

    def close(self) -> None:
        """Close the connection to the API server."""
        with self._lock:
            self._connection.close()

    def _sets(self) -> Iterator[list[str]]:
        """Yield the devices of each container of the pods of this node that have not ended."""
        with self._lock:
            found: dict[str, Any] = self._connection.call("GET", self._path)
        for value in sorted(found["items"], key=_bound_at):
            try:
                one = pod(value, self._resource_name)
            except KubernetesError as error:
                _log.warning("a pod that cannot be read: %s", error)
                continue
            if one.ended or one.gpus is None:
                continue
            for gpus in (by_container(one.annotations) or {}).values():
                if max(gpus, default=0) < len(self._device_ids):
                    yield [self._device_ids[gpu] for gpu in gpus]


def _bound_at(value: Any) -> str:
    """Return the time at which a pod was bound, "" if it is not given."""
    for one in items(mapping(value.get("status"), "status").get("conditions"), "status.conditions"):
        condition = mapping(one, "status.conditions")
        if condition.get("type") == "PodScheduled":
            return str(condition.get("lastTransitionTime"))
    return ""
