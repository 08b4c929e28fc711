"""Run squeue, sinfo and scontrol, without a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property

from topoplace.errors import SlurmError

_TIMEOUT_S = 60.0


class SlurmCommands:
    """Slurm's commands on this host, for one cluster. SlurmError if a command fails, or takes over a minute."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Run commands with `environment`, by default that of this process, such as SLURM_CONF."""
        given = os.environ if environment is None else environment
        kept = {name: value for name, value in given.items() if not name.startswith(("SQUEUE_", "SINFO_"))}
        self._environment = {**kept, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}

    def output(self, program: str, arguments: Sequence[str]) -> str:
        """Return what a command prints."""
        done = self._done(program, arguments)
        if done.returncode:
            raise SlurmError(f"{program}: {_last(done)}")
        return done.stdout

    @cached_property
    def version(self) -> tuple[int, ...]:
        """Return the version of the commands, such as (25, 5, 3)."""
        words = self.output("scontrol", ["version"]).split() or [""]
        return tuple(int(part) for part in words[-1].split(".")[:3] if part.isdigit())

    def change(self, lines: Sequence[str]) -> None:
        """Run `lines` in one scontrol. Slurm may refuse some: the next list of jobs shows which took effect.

        SlurmError only if slurmctld does not answer.
        """
        if not lines:
            return
        done = self._done("scontrol", ["-Q"], "\n".join([*lines, "quit", ""]))
        if "Unable to contact" in done.stderr:
            raise SlurmError(f"scontrol: {_last(done)}")

    def _done(
        self, program: str, arguments: Sequence[str], lines: str = ""
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [program, *arguments],
                input=lines,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                env=self._environment,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            raise SlurmError(f"{program}: there is no such command on this host") from None
        except subprocess.TimeoutExpired:
            raise SlurmError(f"{program}: no answer after {_TIMEOUT_S:g} s") from None


def _last(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a command says about its failure."""
    return (done.stderr or done.stdout).strip()[-300:]
