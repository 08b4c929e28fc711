"""Settings of all benchmarks: one thread, and a header that names the processor and the versions."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def processor() -> str:
    """Return the processor's name from Linux, or else the machine type from Python."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def pytest_report_header() -> list[str]:
    names = ["topoplace", "numpy", "igraph", "rustworkx", "networkx"]
    names += [
        name
        for name in ("pymetis", "kahip", "mtkahypar", "ortools", "pylmcf")
        if importlib.util.find_spec(name)
    ]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    return [f"processor: {processor()}, one thread", f"versions: {versions}"]
