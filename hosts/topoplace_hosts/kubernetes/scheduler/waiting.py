"""The pods that wait for this scheduler, with their groups, in the order of decisions."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.annotations import group_name
from topoplace_hosts.kubernetes.objects.pod import Pod

_DIGITS = re.compile(r"(\d+)")
_MISSING: Final = "{} of {} pods of its group are there"


class Unit(NamedTuple):
    """Pods that are decided together: one pod, or a group."""

    key: str
    pods: tuple[Pod, ...]
    reason: str
    """Why the pods cannot be decided yet; "" if they can."""
    rest: tuple[Pod, ...] = ()
    """All pods that wait of a group that has started, if this is one of them."""

    @property
    def priority(self) -> int:
        """Return the lowest priority of the pods, which counts for all."""
        return min(pod.priority for pod in self.pods)


class WaitingPods:
    """Pods that are not bound, except those with scheduling gates and those that end."""

    def __init__(self, scheduler: str) -> None:
        """scheduler: the `schedulerName` of this scheduler's pods."""
        self._scheduler = scheduler
        self._pods: dict[str, Pod] = {}
        self._seen: dict[str, float] = {}
        self._started: set[tuple[str, str]] = set()

    def set_pod(self, pod: Pod) -> None:
        """Record the present state of a pod."""
        waits = not (pod.node or pod.ended or pod.deleting or pod.gated)
        if waits and pod.scheduler == self._scheduler:
            self._pods[pod.uid] = pod
            self._seen.setdefault(pod.uid, time.monotonic())
        else:
            self.remove_pod(pod.uid)

    def note_started(self, pod: Pod) -> None:
        """Remember that the group of a pod has started: its bound pods may end before all have started."""
        if name := group_name(pod.labels):
            self._started.add((pod.namespace, name))

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is bound or gone."""
        self._pods.pop(uid, None)
        self._seen.pop(uid, None)

    def waited_s(self, pods: Iterable[Pod]) -> float:
        """Return the seconds since the last of these pods was first seen."""
        now = time.monotonic()
        return now - max((self._seen.get(pod.uid, now) for pod in pods), default=now)

    def uids(self) -> list[str]:
        """Return the uids of all waiting pods."""
        return list(self._pods)

    def get(self, uid: str) -> Pod | None:
        """Return a waiting pod; None if there is none with this uid."""
        return self._pods.get(uid)

    def units(self, started: Mapping[tuple[str, str], int]) -> list[Unit]:
        """Return all units in the order of decisions.

        started: the number of bound pods of each group, by namespace and name. The rest of a started group comes first;
        priority and then age order the others.
        """
        found: list[tuple[bool, Unit]] = []
        groups: dict[tuple[str, str], list[Pod]] = {}
        for pod in self._pods.values():
            try:
                group = pod.group
            except KubernetesError as error:
                found.append((False, Unit(pod.uid, (pod,), str(error))))
                continue
            if group is None:
                found.append((False, Unit(pod.uid, (pod,), "")))
            else:
                groups.setdefault((group.namespace, group.name), []).append(pod)
        self._started = {key for key in self._started if key in groups or started.get(key)}
        for key, pods in groups.items():
            found += _group_units(key, pods, runs=bool(started.get(key)), was_started=key in self._started)
        found.sort(
            key=lambda one: (
                not one[0],
                -one[1].priority,
                min(pod.created for pod in one[1].pods),
                one[1].key,
            )
        )
        return [unit for _, unit in found]

    def __len__(self) -> int:
        return len(self._pods)


def _group_units(
    key: tuple[str, str], pods: list[Pod], *, runs: bool, was_started: bool
) -> list[tuple[bool, Unit]]:
    """Return the units of a group, and True for pods of one that has started: they are decided one by one.

    A group of which no pod runs starts anew once all of them are there.
    """
    pods.sort(key=rank_order)
    sizes = Counter(pod.group.size for pod in pods if pod.group)
    size = max(sizes)
    if len(sizes) > 1:
        return [(False, Unit(pod.uid, (pod,), "the pods of its group state different sizes")) for pod in pods]
    if runs or (was_started and len(pods) < size):
        return [(True, Unit(pod.uid, (pod,), "", tuple(pods))) for pod in pods]
    name = f"group {key[0]}/{key[1]}"
    if len(pods) < size:
        return [(False, Unit(name, tuple(pods), _MISSING.format(len(pods), size)))]
    return [(False, Unit(name, tuple(pods[:size]), ""))]


def rank_order(pod: Pod) -> list[tuple[int, int, str]]:
    """Return a sort key, by which worker-10 comes after worker-9: ranks are numbered in this order."""
    words = _DIGITS.split(pod.name)
    return [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in words if word]
