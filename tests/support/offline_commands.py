"""Commands of the manual and the docs that tests cannot run, and why."""

from __future__ import annotations

from typing import Final

NOT_HERE: Final = {
    "show --check": "needs a GPU of this host",
    "explore": "serves until Ctrl-C",
    "show measure": "needs GPUs and nccl-tests",
    "profile record": "needs counters of GPUs or NICs",
    "slurm run": "needs a Slurm cluster",
    "slurm launch": "needs a job of Slurm",
    "slurm release": "needs a Slurm cluster",
    "kubernetes device-plugin": "needs a kubelet",
    "kubernetes scheduler": "needs a Kubernetes cluster",
    "kubernetes extender": "needs a Kubernetes cluster",
    "kubernetes label": "needs a Kubernetes cluster",
    "papers mapa --jobs": "takes minutes; --quick runs the same code",
    "papers sc17 --jobs": "takes minutes; --quick runs the same code",
    "papers drmaestro --jobs": "takes minutes; --quick runs the same code",
    "papers gpuaas --jobs": "takes minutes; --quick runs the same code",
    "papers tsubame --jobs": "takes minutes; --quick runs the same code",
}
"""Examples that no host can run without more than a folder, by how they begin, and why."""


def why_not(arguments: str, known: dict[str, str] = NOT_HERE) -> str | None:
    """Return why a command cannot run, given by what follows `topoplace`; None if it can."""
    return next((why for begin, why in known.items() if arguments.startswith(begin)), None)
