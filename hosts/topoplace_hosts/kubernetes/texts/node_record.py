"""The data of one Kubernetes node in a text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.errors import TopologyError


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One Kubernetes node as a text describes it."""

    name: str
    where: str
    """The start of messages about the node."""
    labels: Mapping[str, str]
    capacity: Mapping[str, str] = field(default_factory=dict[str, str])
    allocatable: Mapping[str, str] = field(default_factory=dict[str, str])
    closed: str = ""
    """Why Kubernetes gives the node no pods, such as "Unschedulable: true"; "" if it gives it some."""

    requested: Mapping[str, str] = field(default_factory=dict[str, str])
    """The amounts that its pods request, as `kubectl describe` shows under "Allocated resources"."""

    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The status of each condition, True, False or Unknown, by its type, such as Ready."""

    taints: Sequence[str] = ()
    """The taints as `kubectl describe` shows them, such as "nvidia.com/gpu=present:NoSchedule"."""

    @property
    def resources(self) -> Mapping[str, str]:
        """Return the capacity, or the allocatable amounts if the text has no capacity."""
        return self.capacity or self.allocatable

    def count(self, source: str, key: str) -> int | None:
        """Return the number under `key` in `source`, a name of the records above, such as "labels"; None if absent."""
        values: Mapping[str, str] = getattr(self, source)
        text = values.get(key)
        if not text:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise TopologyError(f"{self.where}{source} {key} = {_checks.shown(text)} is not a whole number")
        return int(text)
