"""A busy toy cluster with `topoplace slurm run` in its own process, which is killed at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm_jobs import SEES, Mismatch, make_eligible, mismatch, seen, states, told, wait_for
from topoplace_hosts.journal import Journal
from topoplace_hosts.slurm.testing import SlurmCluster

COMMAND = str(Path(sys.executable).with_name("topoplace"))


class PlacerProcess:
    """`topoplace slurm run` for a toy cluster; it can be killed and started again."""

    def __init__(
        self, slurm: SlurmCluster, policy: str = "topo-aware", *, interval: float = 0.2, patience: float = 20
    ) -> None:
        self._slurm = slurm
        self._topology = slurm.folder / "topology.json"
        self._topology.write_text(slurm.topology.to_json(), "utf-8")
        self.journal = slurm.folder / "journal"
        self.log = slurm.folder / "log" / "placer"
        self._options = ["--policy", policy, "--interval", str(interval), "--patience", str(patience)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            COMMAND,
            "slurm",
            "run",
            str(self._topology),
            "--journal",
            str(self.journal),
            *self._options,
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=dict(self._slurm.environment), stderr=log)

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it in the ordinary way, and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def events(self, event: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in self.log.read_text("utf-8").splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue  # written when it was killed
            if one["event"] == event:
                found.append(one)
        return found


@dataclass
class Load:
    """What is done to the cluster, and what came of it."""

    num_jobs: int
    kills: int = 0
    restarts: int = 0
    seed: int = 1
    jobs: list[str] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    seconds: float = 0.0

    def run(self, slurm: SlurmCluster, placer: PlacerProcess, timeout_s: float) -> None:
        """Submit, cancel, requeue, drain and resume, kill and restart, until no job is left."""
        self._random = random.Random(self.seed)
        start = time.monotonic()
        todo = self._events()
        placer.start()
        for act in todo:
            act(slurm, placer)
            time.sleep(self._random.uniform(0.0, 0.1))
        end = time.monotonic() + timeout_s
        while left := states(slurm):
            assert time.monotonic() < end, f"{len(left)} jobs are left: {dict(list(left.items())[:9])}"
            make_eligible(slurm)
            time.sleep(0.2)
        self.seconds = time.monotonic() - start
        assert placer.stop() == 0

    def _events(self) -> list[Callable[[SlurmCluster, PlacerProcess], None]]:
        chance = self._random
        acts: list[Callable[[SlurmCluster, PlacerProcess], None]] = [self._submit] * self.num_jobs
        acts += [self._cancel] * (self.num_jobs // 20) + [self._requeue] * (self.num_jobs // 20)
        chance.shuffle(acts)
        for act, count in ((self._kill, self.kills), (self._restart, self.restarts)):
            for _ in range(count):
                acts.insert(chance.randrange(len(acts) // 10, len(acts)), act)
        acts.insert(len(acts) // 3, lambda slurm, _: self._set_node(slurm, "DRAIN"))
        acts.insert(2 * len(acts) // 3, lambda slurm, _: self._set_node(slurm, "RESUME"))
        return acts

    def _submit(self, slurm: SlurmCluster, _: PlacerProcess) -> None:
        chance = self._random
        gpus, nodes = chance.choice([(1, 1), (2, 1), (2, 1), (3, 1), (4, 1), (5, 1), (8, 1), (8, 2)])
        request = json.dumps(
            {"pattern": chance.choice(["ring", "clique", "tree"]), "sensitive": chance.random() < 0.5}
        )
        script = f"{SEES} sleep {chance.uniform(0.2, 1.5):.2f}"
        options = [f"--gres=gpu:{gpus}", f"-N{nodes}", f"--comment={request}", "--requeue"]
        user = 65534 if os.getuid() == 0 and chance.random() < 0.3 else None
        self.jobs.append(slurm.submit(*options, script=script, user=user))

    def _cancel(self, slurm: SlurmCluster, _: PlacerProcess) -> None:
        if self.jobs:
            job = self._random.choice(self.jobs[-20:])
            self.cancelled.add(job)
            slurm.try_run("scancel", job)

    def _requeue(self, slurm: SlurmCluster, _: PlacerProcess) -> None:
        if running := [job for job, state in states(slurm).items() if state.startswith("R ")]:
            slurm.try_run("scontrol", "requeue", self._random.choice(running))
            make_eligible(slurm)

    def _set_node(self, slurm: SlurmCluster, state: str) -> None:
        change = ("scontrol", "update", "NodeName=n1", f"State={state}", "Reason=test")

        def changed() -> bool:
            slurm.try_run(
                *change
            )  # of a node that has not registered since a restart, RESUME works and says it fails
            shown = slurm.run("sinfo", "-h", "-n", "n1", "-o", "%T")
            return ("drain" in shown) == (state == "DRAIN")

        wait_for(changed, lambda: None)

    def _kill(self, _: SlurmCluster, placer: PlacerProcess) -> None:
        placer.kill()
        placer.start()
        time.sleep(self._random.uniform(0.0, 1.2))

    def _restart(self, slurm: SlurmCluster, _: PlacerProcess) -> None:
        slurm.restart_controller()

    # ---- what came of it -----------------------------------------------------------------------------------

    def mismatches(self, slurm: SlurmCluster, placer: PlacerProcess) -> list[Mismatch]:
        """Return the jobs that started elsewhere than decided, without those that Slurm chose for."""
        by_slurm = {event["job"] for event in placer.events("given_back")}
        with Journal(placer.journal, read_only=True) as journal:
            started = [job for job in self.jobs if seen(slurm, job) and job not in by_slurm]
            found = [mismatch(slurm, journal, job) for job in started]
        return [one for one in found if one is not None]

    def never_started(self, slurm: SlurmCluster) -> list[str]:
        """Return the jobs that did not run, although nobody cancelled them."""
        return [job for job in self.jobs if job not in self.cancelled and not seen(slurm, job)]

    def decided(self, slurm: SlurmCluster, placer: PlacerProcess) -> int:
        """Return how many jobs ran where they were decided."""
        with Journal(placer.journal, read_only=True) as journal:
            return sum(bool(seen(slurm, job) and told(journal, job)) for job in self.jobs)
