"""The files for Slurm's hosts that come with this package: job_submit.lua, the TaskProlog, units of systemd."""

from __future__ import annotations

from importlib import resources

NAMES = (
    "job_submit.lua",
    "task_prolog.sh",
    "topoplace-slurm.service",
    "topoplace-slurm-fallback.service",
    "topoplace-slurm-fallback.timer",
)


def text(name: str) -> str:
    """Return the content of the file called `name`, one of `NAMES`."""
    return (resources.files("topoplace_hosts.slurm") / "files" / name).read_text("utf-8")
