"""Metrics of scheduler and extender: what is counted, and who may read it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the extra kubernetes is not installed")

import topoplace as tp
from kubernetes_objects import node_json, pod_json
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.extender import ExtenderServer, RunningExtender
from topoplace_hosts.kubernetes.metrics import EXTENDER, SCHEDULER, PodFigures
from topoplace_hosts.kubernetes.scheduler import Scheduler
from topoplace_hosts.kubernetes.testing import ApiServer
from topoplace_hosts.metrics import page
from waiting import WAIT, until

TOPOLOGY = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2, names=["n0", "n1"])


def lines(text: bytes) -> dict[str, float]:
    """Return the value of each metric."""
    rows = [line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#")]
    return {f"{name}".removeprefix("topoplace_"): float(value) for name, value in rows}


def test_the_scheduler_counts_decisions_reasons_and_what_it_cannot_know() -> None:
    figures = PodFigures()
    with ApiServer() as api:
        for name in ("n0", "n1"):
            api.store.add("nodes", node_json(name))
        api.store.add("pods", pod_json("strange", 2, nodeName="n1"))  # nobody says which GPUs it has
        scheduler = Scheduler(
            TOPOLOGY, tp.policies.get("topo-aware"), Access("127.0.0.1", api.port), figures=figures
        )
        stop = Event()
        thread = Thread(target=scheduler.run, args=(stop,))
        thread.start()
        labels = {"topoplace.io/group": "g", "topoplace.io/group-size": "2"}
        api.store.add("pods", pod_json("a", 6, priority=1))
        until(lambda: figures.confirmed == 1)
        api.store.add("pods", pod_json("g-0", 1, labels=labels))
        api.store.add("pods", pod_json("claims", 1, resourceClaims=[{"name": "x"}]))
        api.store.add("pods", pod_json("large", 4))
        until(lambda: set(figures.deferred) == {"incomplete group", "impossible", "no room"})
        api.store.add("pods", pod_json("high", 8, priority=5))
        until(lambda: figures.confirmed == 2)
        stop.set()
        thread.join(WAIT)
    found = lines(page(lambda: figures, SCHEDULER)())
    expected = {"decided": 2, "bound": 2, "not_bound": 0, "confirmed": 2, "preempted": 1}
    assert {name: found[f"{name}_total"] for name in expected} == expected
    assert found['deferred_total{reason="impossible"}'] >= 1
    assert (found["closed_nodes"], found["latency_seconds_count"]) == (1, 2)
    assert found['latency_seconds_bucket{le="+Inf"}'] == 2


def test_fragmentation_is_that_of_the_sockets() -> None:
    state = Scheduler(TOPOLOGY, tp.policies.get("topo-aware"), Access("127.0.0.1", 1)).state
    assert state.fragmentation() == 0
    state.cluster.undrain("n0")
    state.cluster.allocate("a", [0, 1, 2, 4])
    gpus = TOPOLOGY.gpus_of["n0"]
    expected = tp.objectives.fragmentation([0, 1, 2, 4], TOPOLOGY, gpus)  # of n0 alone
    assert state.fragmentation() == pytest.approx(expected / 2)


def test_the_extender_counts_its_answers() -> None:
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        running = RunningExtender(TOPOLOGY, tp.policies.get("topo-aware"), Access("127.0.0.1", api.port))
        stop, ready = Event(), Event()
        thread = Thread(target=running.follow, args=(stop, ready))
        thread.start()
        assert ready.wait(WAIT)
        answers = running.answers()
        for name, gpus in (("a", 6), ("b", 4)):
            pod = pod_json(name, gpus)
            api.store.add("pods", pod)
            answers["/filter"]({"Pod": pod, "NodeNames": ["n0"]})
            answers["/bind"]({"PodNamespace": "default", "PodName": name, "Node": "n0"})
        found = lines(page(running.figures, EXTENDER)())
        stop.set()
        thread.join(WAIT)
    assert (found["decided_total"], found["bound_total"], found["latency_seconds_count"]) == (1, 1, 4)
    assert found['deferred_total{reason="no node"}'] == found['deferred_total{reason="not bound"}'] == 1
    assert found["fragmentation"] > 0


# ---- who may read them ---------------------------------------------------------------------------------------------


def read(port: int, path: str = "/metrics", **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_page_needs_the_token() -> None:
    with ExtenderServer({"/filter": dict}, token="secret", pages={"/metrics": lambda: b"a 1\n"}) as server:
        assert read(server.port) == (401, b'{"Error":"no token, or a wrong one"}')
        assert read(server.port, Authorization="Bearer wrong")[0] == 401
        assert read(server.port, Authorization="Bearer secret") == (200, b"a 1\n")
        assert read(server.port, "/healthz") == (200, b"{}")
        assert b"POST /filter, GET /healthz, GET /metrics" in read(server.port, "/else")[1]


@pytest.mark.parametrize(
    ("words", "event"),
    [
        (["scheduler", "dgx1-v100", "--metrics", "127.0.0.1:0"], "metrics"),
        (["extender", "dgx1-v100", "--metrics", "--listen", "127.0.0.1:0"], "ready"),
    ],
    ids=["scheduler", "extender"],
)
def test_the_commands_serve_them(tmp_path: Path, words: list[str], event: str) -> None:
    with ApiServer() as api:
        (tmp_path / "kubeconfig").write_text(api.kubeconfig(), "utf-8")
        (tmp_path / "token").write_text("secret", "utf-8")
        command = [sys.executable, "-m", "topoplace", "kubernetes", *words, "--token-file", "token"]
        with subprocess.Popen(
            [*command, "--kubeconfig", "kubeconfig"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                port = _port(process, event)
                assert read(port)[0] == 401
                status, text = read(port, Authorization="Bearer secret")
                assert (status, lines(text)["decided_total"]) == (200, 0)
            finally:
                process.terminate()
                process.communicate(timeout=WAIT)


def _port(process: subprocess.Popen[str], event: str) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event and "port" in found:
            return int(found["port"])
    raise AssertionError("it has ended")
