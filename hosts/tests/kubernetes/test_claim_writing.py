"""What is written about the claims of a pod, where they are not any more what was decided about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from kubernetes_objects import DRIVER, claim_json, claims_of, exactly, pod_json
from topoplace_hosts.kubernetes.claims.allocation_json import FINALIZER, Planned
from topoplace_hosts.kubernetes.claims.claim import claim
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import Connection
from topoplace_hosts.kubernetes.objects.pod import pod
from topoplace_hosts.kubernetes.scheduler.claiming.placing import MOST_RESERVATIONS
from topoplace_hosts.kubernetes.scheduler.claiming.writing import take_back, write
from topoplace_hosts.kubernetes.testing import ApiServer

POD = pod(pod_json("a", 0, resourceClaims=claims_of("c", "d")))
Change = Callable[[dict[str, Any]], None]


def allocation(*gpus: int) -> dict[str, Any]:
    results = [
        {"request": "gpus", "driver": DRIVER, "pool": "n0", "device": f"gpu-{gpu}", "adminAccess": False}
        for gpu in gpus
    ]
    return {"devices": {"results": results}}


def plan(name: str, *gpus: int) -> Planned:
    """Return that a claim, which has no devices yet, gets these."""
    wanted = allocation(*gpus)
    value = claim_json(name, exactly("gpus", len(gpus)), status={"allocation": wanted})
    found = claim(value)
    assert found.allocation is not None
    return Planned(found, found.allocation, wanted)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        for name in ("c", "d"):
            server.store.add("resourceclaims", claim_json(name, exactly("gpus", 2)))
        yield server


@pytest.fixture
def connection(api: ApiServer) -> Iterator[Connection]:
    with closing(Connection(Access("127.0.0.1", api.port))) as opened:
        yield opened


def test_all_claims_are_written_and_taken_back(api: ApiServer, connection: Connection) -> None:
    plans = [plan("c", 0, 1), plan("d", 2, 3)]
    for _ in range(2):  # the second time, all is there
        written = write(connection, POD, plans, Event())
        assert written is not None
        assert written.error == ""
        for truth in written.truths:
            assert truth["metadata"]["finalizers"] == [FINALIZER]
            assert truth["status"]["reservedFor"] == [{"resource": "pods", "name": "a", "uid": "uid-a"}]
    for _ in range(2):
        back = take_back(connection, POD, plans, Event())
        assert back is not None
        assert [one["status"] for one in back.truths] == [{}, {}]
        assert [one["metadata"]["finalizers"] for one in back.truths] == [[], []]


def deleted(value: dict[str, Any]) -> None:
    value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


def replaced(value: dict[str, Any]) -> None:
    value["metadata"]["uid"] = "uid-of-another"


def otherwise(value: dict[str, Any]) -> None:
    value["status"]["allocation"] = allocation(6, 7)


def unreadable(value: dict[str, Any]) -> None:
    value["status"]["allocation"] = {"devices": {"results": [{"driver": DRIVER, "pool": "n0", "device": 7}]}}


def full(value: dict[str, Any]) -> None:
    others = [{"resource": "pods", "name": f"p{i}", "uid": f"{i}"} for i in range(MOST_RESERVATIONS)]
    value["status"] = {"allocation": allocation(2, 3), "reservedFor": others}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (deleted, "it is being deleted"),
        (replaced, "another claim has its name"),
        (otherwise, "it has other devices by now"),
        (unreadable, "results.device = 7 is not a text"),
        (full, f"it is used by {MOST_RESERVATIONS} pods"),
    ],
)
def test_a_claim_that_is_another_one_by_now_frees_those_before_it(
    api: ApiServer, connection: Connection, change: Change, why: str
) -> None:
    api.store.change("resourceclaims", "d", change)
    before = api.store.get("resourceclaims", "d")
    written = write(connection, POD, [plan("c", 0, 1), plan("d", 2, 3)], Event())
    assert written is not None
    assert written.error.startswith("claim default/d")
    assert why in written.error
    assert api.store.get("resourceclaims", "c")["status"] == {}
    assert api.store.get("resourceclaims", "d")["status"] == before["status"]


def test_what_cannot_be_taken_back_is_said(api: ApiServer, connection: Connection) -> None:
    plans = [plan("c", 0, 1), plan("d", 2, 3)]
    assert write(connection, POD, plans, Event()) is not None
    api.fail("resourceclaims/c/status", 403)
    back = take_back(connection, POD, plans, Event())
    assert back is not None
    assert back.truths == ()
    assert "403" in back.error
    assert api.store.get("resourceclaims", "d")["status"]["reservedFor"]


def test_nothing_is_insisted_on_once_it_is_stopped(api: ApiServer, connection: Connection) -> None:
    stopped = Event()
    stopped.set()
    plans = [plan("c", 0, 1)]
    for do in (write, take_back):
        api.fail("resourceclaims/c", 503)
        assert do(connection, POD, plans, stopped) is None
    assert api.store.get("resourceclaims", "c")["status"] == {}


def test_conflicts_do_not_go_on_for_ever(api: ApiServer, connection: Connection) -> None:
    api.fail("resourceclaims/c/status", 409, times=1000)
    written = write(connection, POD, [plan("c", 0, 1)], Event())
    assert written is not None
    assert "409" in written.error
