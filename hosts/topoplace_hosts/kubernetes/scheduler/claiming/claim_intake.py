"""Apply events of the API server to devices and claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from topoplace.errors import KubernetesError
from topoplace_hosts import log
from topoplace_hosts.kubernetes.claims.claim import DeviceClass, claim, device_class
from topoplace_hosts.kubernetes.claims.pools import resource_slice
from topoplace_hosts.kubernetes.client.watch import Kind, News
from topoplace_hosts.kubernetes.metrics import PodFigures
from topoplace_hosts.kubernetes.objects.fields import mapping
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.intake import why

KINDS: Final[tuple[Kind, ...]] = ("resourceslices", "deviceclasses", "resourceclaims")


class ClaimIntake:
    """Applies events about slices, classes and claims. What cannot be read is logged, and no decision uses it."""

    def __init__(self, state: ClusterState, figures: PodFigures, write_log: log.Log) -> None:
        """figures: counts of objects that cannot be read."""
        self._state = state
        self._figures = figures
        self._log = write_log
        self._listed: set[str] = set()
        self._unserved: set[str] = set()
        self._classes: dict[str, DeviceClass] = {}
        self._take_one: dict[str, Callable[[Any], None]] = {
            "resourceslices": lambda value: state.set_slice(resource_slice(value)),
            "deviceclasses": self._take_class,
            "resourceclaims": lambda value: state.set_claim(claim(value)),
        }

    @property
    def is_complete(self) -> bool:
        """Return True once all objects are listed, or the API server has none."""
        return len(self._listed | self._unserved) == len(KINDS)

    def take(self, news: News) -> None:
        """Apply one event."""
        if news.type == "FAILED":
            self._figures.unreadable["answers"] += 1
            self._log("watch_failed", kind=news.kind, error=str(news.value))
        elif news.type == "UNSERVED":
            if news.kind not in self._unserved:
                self._unserved.add(news.kind)
                self._log("no_claims", error=str(news.value))
        elif news.type == "LISTED":
            self._listed.add(news.kind)
            self._unserved.discard(news.kind)
            self._take_list(news.kind, cast("list[Any]", news.value))
        elif news.type == "DELETED":
            self._remove(news.kind, *_identity(news.value))
        else:
            self._take_value(news.kind, news.value)
        served = not self._unserved
        if served != self._state.claims.is_served:
            self._state.claims.is_served = served
            self._state.freed += 1

    def take_claim(self, value: Any) -> None:
        """Record the present state of a claim."""
        self._take_value("resourceclaims", value)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _take_list(self, kind: Kind, values: list[Any]) -> None:
        there = {_identity(one) for one in values}
        for one in self._known(kind) - there:
            self._remove(kind, *one)
        for value in values:
            self._take_value(kind, value)

    def _known(self, kind: Kind) -> set[tuple[str, str]]:
        if kind == "resourceslices":
            return {("", name) for name in self._state.claims.slices()}
        if kind == "deviceclasses":
            return {("", name) for name in self._classes}
        return set(self._state.claims.claims)

    def _remove(self, kind: Kind, namespace: str, name: str) -> None:
        if kind == "resourceslices":
            self._state.remove_slice(name)
        elif kind == "deviceclasses":
            self._classes.pop(name, None)
            self._state.set_classes(dict(self._classes))
        else:
            self._state.remove_claim((namespace, name))

    def _take_value(self, kind: Kind, value: Any) -> None:
        try:
            self._take_one[kind](value)
        except Exception as error:  # a tenant or a driver wrote it
            namespace, name = _identity(value)
            self._figures.unreadable[kind] += 1
            self._log("object_unreadable", kind=kind, name=f"{namespace}/{name}", error=why(error))
            if kind != "resourceclaims":  # of a claim, what is known already may hold devices
                self._remove(kind, namespace, name)

    def _take_class(self, value: Any) -> None:
        one = device_class(value)
        self._classes[one.name] = one
        self._state.set_classes(dict(self._classes))


def _identity(value: Any) -> tuple[str, str]:
    """Return the namespace and the name of an object, for what they are worth."""
    try:
        metadata = mapping(mapping(value, "object").get("metadata"), "metadata")
    except KubernetesError:
        return "", ""
    return str(metadata.get("namespace") or "")[:253], str(metadata.get("name"))[:253]
