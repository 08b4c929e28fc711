"""One of several programs leads, by a Lease."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from kubernetes_objects import node_json, pod_json
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.lease import Leadership
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import WAIT, until


class Program:
    """A program that wants to lead, in a thread."""

    def __init__(self, api: ApiServer, name: str, duration_s: float) -> None:
        self.logged: list[str] = []
        self.works = False
        self.stop = Event()
        self._leadership = Leadership(
            Access("127.0.0.1", api.port),
            "kube-system",
            "l",
            identity=name,
            duration_s=duration_s,
            write_log=lambda event, **_: self.logged.append(event),
        )
        self._thread = Thread(target=self._leadership.run, args=(self._work, self.stop))
        self._thread.start()

    def _work(self, end: Event) -> None:
        self.works = True
        assert end.wait(WAIT)
        self.works = False

    def finish(self) -> None:
        self.stop.set()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


@contextmanager
def program(api: ApiServer, name: str, duration_s: float = 3.0) -> Iterator[Program]:
    found = Program(api, name, duration_s)
    try:
        yield found
    finally:
        found.finish()


def holder(api: ApiServer) -> dict[str, Any]:
    (lease,) = api.store.listed("leases")[0]
    return dict(lease["spec"])


def test_the_second_leads_when_the_first_has_ended() -> None:
    with ApiServer() as api, program(api, "a") as first:
        until(lambda: first.works)
        with program(api, "b") as second:
            until(lambda: "follows" in second.logged)
            assert (second.works, holder(api)["holderIdentity"]) == (False, "a")
            renewed = holder(api)["renewTime"]
            until(lambda: holder(api)["renewTime"] > renewed)
            first.finish()
            assert not first.works
            until(lambda: second.works)
            assert (holder(api)["holderIdentity"], holder(api)["leaseTransitions"]) == ("b", 1)
        assert holder(api)["holderIdentity"] == ""


def test_whoever_cannot_renew_ends_and_leads_again_later() -> None:
    with ApiServer() as api, program(api, "a", 0.6) as leader:
        until(lambda: leader.works)
        api.stop()
        until(lambda: not leader.works)
        assert "lease_failed" in leader.logged
        api.restart()
        until(lambda: leader.works)


def test_a_lease_of_a_dead_program_is_taken_once_it_has_run_out() -> None:
    with ApiServer() as api:
        spec = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 4}
        api.store.add("leases", {"metadata": {"name": "l"}, "spec": spec})
        with program(api, "a", 0.6) as leader:
            until(lambda: leader.works)
            assert leader.logged[:2] == ["follows", "leads"]
            assert holder(api)["leaseTransitions"] == 5


def test_a_lease_that_is_renewed_is_never_taken() -> None:
    with ApiServer() as api:
        spec = {"holderIdentity": "alive", "leaseDurationSeconds": 1}
        api.store.add("leases", {"metadata": {"name": "l"}, "spec": spec})
        with program(api, "a", 5.0) as follower:
            until(lambda: "follows" in follower.logged)
            for i in range(3):
                asked = len(api.requests)
                api.store.change("leases", "l", lambda lease, i=i: lease["spec"].update(renewTime=str(i)))
                until(lambda asked=asked: len(api.requests) > asked)
            assert "leads" not in follower.logged
            assert not any(line.startswith(("PUT", "POST")) for line in api.requests)


def test_of_two_that_take_a_free_lease_at_once_one_leads() -> None:
    with ApiServer() as api:
        api.store.add("leases", {"metadata": {"name": "l"}, "spec": {"holderIdentity": ""}})
        api.fail("leases/l", 409)  # 409: another one was faster
        with program(api, "a", 0.6) as leader:
            until(lambda: leader.works)
            assert leader.logged[0] == "lease_failed"


def test_the_scheduler_binds_while_it_holds_its_lease_and_gives_it_back(tmp_path: Path) -> None:
    with ApiServer() as api:
        (tmp_path / "kubeconfig").write_text(api.kubeconfig(), "utf-8")
        api.store.add("nodes", node_json("machine0"))
        api.store.add("pods", pod_json("a", 2))
        words = ["scheduler", "dgx1-v100", "--kubeconfig", "kubeconfig", "--lease", "kube-system/l"]
        command = [sys.executable, "-m", "topoplace", "kubernetes", *words]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: not api.store.waiting())
                assert holder(api)["holderIdentity"]
            finally:
                process.terminate()
                process.communicate(timeout=WAIT)
        assert holder(api)["holderIdentity"] == ""
