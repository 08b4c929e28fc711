"""CPU time of calls through the C interface, and of the same calls in Python: `python benchmarks/bench_c_interface.py`.

It builds the C library in a temporary directory; Python's shared library, CMake and a C compiler are needed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import topoplace as tp

ROOT = Path(__file__).parents[1]
ROUNDS, BLOCKS = 5000, 7


def in_python() -> dict[str, float]:
    """Return microseconds of calls in Python."""
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    policy = tp.policies.get("mapa-preserve")
    job = tp.JobGraph.ring(4).with_(bandwidth_sensitive=True)

    def place_and_release() -> None:
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate("job", placement, job)
        cluster.release("job")

    return {"place and release": best(place_and_release), "free GPUs": best(cluster.free_gpus)}


def best(call: Callable[[], object]) -> float:
    """Return the least mean of several blocks of calls, in microseconds."""
    means: list[float] = []
    for _ in range(BLOCKS):
        start = time.thread_time()
        for _ in range(ROUNDS):
            call()
        means.append((time.thread_time() - start) / ROUNDS * 1e6)
    return min(means)


def in_c(folder: Path) -> str:
    """Build the library and bench_c_interface.c in `folder`, and return what the program prints."""
    prefix, program = folder / "prefix", folder / "bench"
    source = ROOT / "benchmarks/bench_c_interface.c"
    for command in (
        ["cmake", "-S", ROOT, "-B", folder, "-DTOPOPLACE_C=ON", f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", folder, "--target", "topoplace_c"],
        ["cmake", "--install", folder, "--component", "c", "--prefix", prefix],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (library,) = prefix.glob("lib*/**/libtopoplace_c.so")
    linked = ["-L", library.parent, "-ltopoplace_c", f"-Wl,-rpath,{library.parent}", "-lpthread"]
    subprocess.run(["cc", "-O2", source, "-I", prefix / "include", *linked, "-o", program], check=True)
    return subprocess.run([program, sys.prefix], check=True, capture_output=True, text=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print("C, microseconds:", in_c(Path(folder)), sep="\n")
    print("Python, microseconds:")
    for name, value in in_python().items():
        print(f"{name} {value:.2f}")


if __name__ == "__main__":
    main()
