"""Placements of ranks on named machines, and where each rank must be: by the topology alone, without the launcher."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import topoplace as tp

PROBE = "sh -c 'echo \"rank ${%s} ${%s} $CUDA_VISIBLE_DEVICES\"'"
"""A program that says its rank, its machine and its device, by the names of two variables."""


def machine(*cpus: str | None) -> tp.Topology:
    """Return a machine of four GPUs, two of them near each text of `cpus`."""
    gpus = [
        tp.Gpu(i, f"GPU{i}", "H100", socket=i // 2, cpus=(cpus or (None, None))[i // 2]) for i in range(4)
    ]
    return tp.Topology(gpus)


def cluster(names: Sequence[str], *cpus: str | None) -> tp.Topology:
    """Return machines of four GPUs with these names."""
    return tp.Topology.cluster(machine(*cpus), names=names)


def random_gpus(topology: tp.Topology, seed: int) -> tuple[int, ...]:
    """Return some GPUs in any order: machines interleave, and have different numbers of them."""
    count = random.Random(seed).randint(2, topology.num_gpus - 1)
    return tuple(random.Random(seed).sample(range(topology.num_gpus), count))


def expected(placement: tp.Placement) -> list[tuple[int, str, str]]:
    """Return rank, machine and device of each rank, of machines with four GPUs each."""
    names = placement.topology.machine_names
    return [(rank, names[gpu // 4], str(gpu % 4)) for rank, gpu in enumerate(placement.gpus)]


def started(
    launch: tp.Launch,
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Write the files of a launch into `folder`, and type its command there."""
    for name, text in launch.files.items():
        (folder / name).write_text(text, "utf-8")
    return subprocess.run(
        ["sh", "-c", launch.command],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> list[tuple[int, str, str]]:
    """Return rank, machine and device of each rank, by what the ranks print."""
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("rank ")]
    return sorted((int(rank), where, device) for _, rank, where, device in lines)
