"""The command as a process that is killed again and again while pods come and go and the API server fails.

With TOPOPLACE_KUBERNETES_DEEP=1: 2,000 pods, killed 50 times. Otherwise 1,000 pods, killed 3 times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import topoplace as tp
from kubernetes_objects import DRIVER, claim_spec, class_json, exactly, node_json, nodes_outside, pod_json
from topoplace_hosts.kubernetes.resource_slices import resource_slices
from topoplace_hosts.kubernetes.testing import ApiServer, ObjectStore, control_claims

DEEP = os.environ.get("TOPOPLACE_KUBERNETES_DEEP") == "1"
PODS, KILLS = (2000, 50) if DEEP else (500, 3)
NODES = 16
WAIT = 1200.0 if DEEP else 300.0
MACHINE = tp.machines.get("dgx1-v100")
FAULTS = (
    *(("/binding", 409), ("/binding", 503), ("/binding", 0), ("/binding", 403)),
    *(("/api/v1/pods", 500), ("/resourceclaims", 500), ("/events", 500)),
    *(("/status", 409), ("/status", 503), ("/status", 0), ("/status", 422)),
)
CLAIMS = 0.3
"""How many of the pods that start singly have claims."""


class Process:
    """The scheduler as a process that can be killed and started again."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        topology = tp.Topology.cluster(MACHINE, NODES, names=[f"n{i}" for i in range(NODES)])
        (folder / "topology.json").write_text(topology.to_json())
        (folder / "kubeconfig").write_text(api.kubeconfig())
        self._folder = folder
        self.start()

    def start(self) -> None:
        words = [
            "kubernetes",
            "scheduler",
            "topology.json",
            "--kubeconfig",
            "kubeconfig",
            "--journal",
            "journal",
        ]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "topoplace", *words], cwd=self._folder, stderr=log
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def end(self, number: int) -> None:
        assert self._process.poll() is None, (self._folder / "log").read_text("utf-8")[-3000:]
        self._process.send_signal(number)
        self._process.wait(30.0)

    def log(self) -> str:
        return (self._folder / "log").read_text("utf-8")


def jobs(generator: random.Random) -> list[list[dict[str, Any]]]:
    """Return all pods, in the lists in which they are created."""
    found: list[list[dict[str, Any]]] = []
    count = 0
    while count < PODS:
        if generator.random() < 0.1 and count + 4 <= PODS:
            labels = {"topoplace.io/group": f"g{count}", "topoplace.io/group-size": "4"}
            found.append([pod_json(f"g{count}-{i}", 2, labels=labels) for i in range(4)])
        elif generator.random() < CLAIMS:
            made = [f"of-{generator.choice((1, 2, 4))}" for _ in range(generator.choice((1, 1, 2)))]
            entries = [{"name": f"c{i}", "resourceClaimTemplateName": one} for i, one in enumerate(made)]
            found.append([pod_json(f"c{count}", 0, resourceClaims=entries)])
        else:
            found.append([pod_json(f"p{count}", generator.choice((0, 1, 1, 2, 2, 4, 8)))])
        count += len(found[-1])
    return found


def given_twice(store: ObjectStore) -> set[tuple[str, int]]:
    """Return the GPUs that a claim and an annotation have."""
    with store.changed:
        by_claims = {(pool, int(device.removeprefix("gpu-"))) for _, pool, device in store.allocated()}
        return by_claims & {(node, gpu) for node, gpu, _ in store.held()}


def test_churn_faults_and_kills_give_no_gpu_twice_and_lose_no_pod(tmp_path: Path) -> None:
    generator = random.Random(5)
    todo = jobs(generator)
    total = sum(map(len, todo))
    end = time.monotonic() + WAIT
    kill_at = [round((i + 1) * total / (KILLS + 1)) for i in range(KILLS)]
    finished: set[str] = set()
    with ApiServer() as api:
        for outside in nodes_outside():
            api.store.add("nodes", outside)
        for i in range(NODES):
            api.store.add("nodes", node_json(f"n{i}"))
            for one in resource_slices(f"n{i}", MACHINE, DRIVER):
                api.store.add("resourceslices", one)
        api.store.add("deviceclasses", class_json())
        api.store.templates.update({f"of-{i}": claim_spec(exactly("gpus", i)) for i in (1, 2, 4)})
        with Process(api, tmp_path) as process:
            while len(finished) < total:
                assert time.monotonic() < end, (len(finished), api.store.waiting()[:5], process.log()[-2000:])
                waiting = len(api.store.waiting())
                while todo and waiting < 60:
                    batch = todo.pop()
                    waiting += len(batch)
                    for one in batch:
                        api.store.add("pods", one)
                control_claims(api.store)
                assert not given_twice(api.store)
                running = [
                    name
                    for name, pod in api.store.pods().items()
                    if pod["spec"].get("nodeName") and name not in finished
                ]
                for name in running:
                    if generator.random() < 0.3:
                        finished.add(name)
                        if generator.random() < 0.5:
                            api.store.finish(name)
                        else:
                            api.store.remove("pods", name)
                if generator.random() < 0.05:
                    generator.choice(
                        (
                            api.cut_watches,
                            api.store.forget_history,
                            lambda: api.fail(*generator.choice(FAULTS)),
                        )
                    )()
                if kill_at and len(api.store.bound) >= kill_at[0]:
                    del kill_at[0]
                    process.end(signal.SIGKILL)
                    process.start()
                time.sleep(0.02)
            process.end(signal.SIGTERM)
            assert api.store.twice == []
            assert sorted(api.store.bound) == sorted(finished)  # each was bound once
            control_claims(api.store)
            assert api.store.allocated() == {}
            assert len([name for name in finished if name.startswith("c")]) > PODS / 10
    assert '"event": "ready"' in process.log()
