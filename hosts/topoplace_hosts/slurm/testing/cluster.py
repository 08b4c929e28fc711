"""SlurmCluster: a context manager around slurmctld and one slurmd for each node, all on the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from topoplace import _checks
from topoplace.errors import SlurmError
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm.testing import configuration, daemons

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo", "scancel")
_START_S = 60.0
_ATTEMPTS = 3
"""Limit on starts of the cluster, because another program may take a free port before a daemon does."""
_COMMAND_S = 60.0
_PATH = os.pathsep.join((os.defpath, "/usr/sbin", "/usr/local/sbin"))


def missing_programs() -> tuple[str, ...]:
    """Return the programs of Slurm that this host lacks; () if a `SlurmCluster` can start."""
    return tuple(name for name in PROGRAMS if _found(name) is None)


class SlurmCluster:
    """Real daemons of Slurm on this host, for the length of a `with` block.

    The nodes are the machines of `topology`, with its names. Jobs really run, on this host, as the user who submits
    them; their GPUs are links to /dev/null. All files are in a directory that is removed at the end, and all processes
    are killed, even after errors. SlurmError says why the cluster does not start.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        cpus: int = 32,
        types: bool = True,
        job_submit: bool = True,
        task_prolog: bool = True,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Describe the cluster; nothing starts before the `with` block.

        cpus: CPUs of each node. types: True for one gres type per device, as topoplace needs it; False lets Slurm
        choose devices by their links. job_submit: True for topoplace's job_submit.lua. task_prolog: True for
        topoplace's task_prolog.sh. settings: lines of slurm.conf by key, such as {"PriorityType": "priority/basic"};
        they replace those of `configuration.SETTINGS`. TopologyPlugin=topology/block takes the blocks of the level
        "block".
        """
        _checks.instance(topology, Topology, "topology", ValueError)
        self._topology = topology
        self._options: dict[str, Any] = {
            "cpus": _checks.integer(cpus, "cpus", ValueError, low=1, high=1 << 16),
            "types": types,
            "job_submit": job_submit,
            "task_prolog": task_prolog,
            "settings": settings,
        }
        self._folder: Path | None = None
        self._controller: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def topology(self) -> Topology:
        """Return the topology whose machines are the nodes."""
        return self._topology

    @property
    def folder(self) -> Path:
        """Return the directory with slurm.conf, logs and state; jobs may write their output there."""
        if self._folder is None:
            raise SlurmError("the cluster runs only inside its with block")
        return self._folder

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment variables with which Slurm's commands find this cluster."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SLURM", "SBATCH", "SQUEUE"))
        }
        return {**kept, "SLURM_CONF": f"{self.folder}/slurm.conf", "SLURM_TIME_FORMAT": "%s"}

    # ---- the with block --------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if lacking := missing_programs():
            raise SlurmError(f"this host has no {', '.join(lacking)}")
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._start()
                return self
            except BaseException as error:
                self._stop()
                if not left or not isinstance(error, SlurmError):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="topoplace-slurm-"))
        self._folder.chmod(0o755)
        ports = daemons.free_ports(1 + self._topology.num_machines)
        configuration.write(self._folder, self._topology, ports, **self._options)
        (self._folder / "out").mkdir()
        (self._folder / "out").chmod(0o777)
        self._start_controller("-c")
        for node in self._topology.machine_names:
            self.start_node(node)
        self._wait_for_nodes()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._folder is None:
            return
        daemons.end_all("SLURM_CONF", f"{self._folder}/slurm.conf")
        for process in (self._controller, *self._nodes.values()):
            if process is not None:
                process.kill()
                process.wait()
        self._controller = None
        self._nodes.clear()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    # ---- daemons ---------------------------------------------------------------------------------------------

    def kill_controller(self) -> None:
        """Kill slurmctld with -9."""
        if self._controller is not None:
            self._controller.kill()
            self._controller.wait()
            self._controller = None

    def restart_controller(self) -> None:
        """Stop slurmctld normally if it runs, start it again on its saved state, and wait for its answer."""
        if self._controller is not None:
            self._controller.send_signal(signal.SIGTERM)
            self._controller.wait(_START_S)
        self._start_controller()

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node."""
        command = [_program("slurmd"), "-D", "-N", node, "-f", f"{self.folder}/slurm.conf"]
        self._nodes[node] = daemons.started(command, self.environment)

    def kill_node(self, node: str) -> None:
        """Kill the slurmd of a node with -9; its jobs continue until Slurm notices."""
        process = self._nodes.pop(node)
        process.kill()
        process.wait()

    def pause_node(self, node: str) -> None:
        """Pause the slurmd of a node until `resume_node`; meanwhile it does not answer."""
        self._nodes[node].send_signal(signal.SIGSTOP)

    def resume_node(self, node: str) -> None:
        """Resume a paused slurmd."""
        self._nodes[node].send_signal(signal.SIGCONT)

    def _start_controller(self, *options: str) -> None:
        command = [_program("slurmctld"), "-D", *options, "-f", f"{self.folder}/slurm.conf"]
        self._controller = daemons.started(command, self.environment)
        self._wait("slurmctld does not answer", lambda: self._answers("scontrol", "ping"))

    def _answers(self, *command: str) -> bool:
        done = self.try_run(*command)
        return done.returncode == 0 and "DOWN" not in done.stdout

    def _wait_for_nodes(self) -> None:
        def all_idle() -> bool:
            return set(self.run("sinfo", "-h", "-N", "-o", "%t").split()) <= {"idle"}

        self._wait("the nodes do not register", all_idle)

    def _wait(self, what: str, done: Any) -> None:
        end = time.monotonic() + _START_S
        ready = False
        while not ready:
            ready = bool(done())
            if self._controller is not None and self._controller.poll() is not None:
                raise SlurmError(f"slurmctld has exited: {self._last_log()}")
            if ended := [node for node, process in self._nodes.items() if process.poll() is not None]:
                raise SlurmError(f"slurmd of {ended[0]} has exited: see its log")
            if time.monotonic() > end:
                raise SlurmError(f"{what} after {_START_S:g} s: {self._last_log()}")
            time.sleep(0.05)

    def _last_log(self) -> str:
        log = self.folder / "log" / "slurmctld"
        return " / ".join(log.read_text("utf-8", "replace").splitlines()[-3:]) if log.exists() else "no log"

    # ---- commands --------------------------------------------------------------------------------------------

    def try_run(
        self, *command: str, user: str | int | None = None, env: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm for this cluster, and return its result even if it fails.

        user: who runs it, which only root may choose. env: further environment variables.
        """
        return subprocess.run(
            [_program(command[0]), *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env={**self.environment, **env},
            cwd=self.folder / "out",
            timeout=_COMMAND_S,
            check=False,
            user=user,
        )

    def run(
        self, *command: str, user: str | int | None = None, env: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """Run a command as `try_run` does, and return what it prints; SlurmError if it fails."""
        done = self.try_run(*command, user=user, env=env)
        if done.returncode:
            raise SlurmError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-400:]}")
        return done.stdout

    def submit(
        self,
        *options: str,
        script: str,
        user: str | int | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Submit a shell script with options of sbatch, and return the job's id."""
        given = ("--parsable", "-o", "/dev/null", *options, "--wrap", script)
        return self.run("sbatch", *given, user=user, env=env).strip().partition(";")[0]

    def wait_until_empty(self, timeout_s: float = 60.0) -> None:
        """Wait until no job runs or waits; SlurmError names the remaining jobs after `timeout_s` seconds."""
        end = time.monotonic() + timeout_s
        while left := self.run("squeue", "-h", "-o", "%i %t %r"):
            if time.monotonic() > end:
                raise SlurmError(f"jobs are left after {timeout_s:g} s: {'; '.join(left.splitlines()[:20])}")
            time.sleep(0.1)


def _found(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), _PATH)))


def _program(name: str) -> str:
    path = _found(name)
    if path is None:
        raise SlurmError(f"this host has no {name}")
    return path
