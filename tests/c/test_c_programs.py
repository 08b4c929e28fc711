"""Programs in C, C++ and Go that place jobs in processes of their own, without Python in them before."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.c.conftest import TOOLS, run

import topoplace as tp

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path, shared_library: Path, prefix: Path) -> Build:
    """Returns a function that compiles one source, and links it with the library."""

    def compiled(source: Path, *options: str, compiler: str = "cc", links: bool = True) -> Path:
        if not shutil.which(compiler):
            pytest.skip(f"needs the compiler {compiler}")
        folder = shared_library.parent
        linked = ["-L", folder, "-ltopoplace_c", f"-Wl,-rpath,{folder}"] if links else []
        program = tmp_path / source.stem
        command = [compiler, *STRICT, *options, "-I", prefix / "include", source, *linked, "-o", program]
        run([*command, "-lpthread", "-ldl"])
        return program

    return compiled


def expected(text: str, gpu_model: str | None = None) -> str:
    """What the examples print, decided by the Python API."""
    topology = tp.read(text, gpu_model=gpu_model)
    cluster, policy = tp.Cluster(topology), tp.policies.get("mapa-preserve")
    lines = [f"{topology.num_gpus} GPUs"]
    for job_id, job in (
        ("training", tp.JobGraph.ring(4).with_(bandwidth_sensitive=True)),
        ("serving", tp.JobGraph.ring(2)),
    ):
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate(job_id, placement)
        lines.append(f"{job_id} is placed")
        for task, gpu in enumerate(placement.gpus):
            found = topology.gpus[gpu]
            lines.append(
                f"  task {task}: {found.name}, number {topology.local_index[gpu]} on {found.machine}"
            )
        best = "; no placement is better" if placement.optimal else ""
        bandwidth = placement.scores["aggregated_bandwidth"]
        lines.append(f"  its links have {bandwidth:g} GB/s together{best}")
    refusal = policy.explain(tp.JobGraph.ring(4), cluster).refusal
    assert refusal is not None
    lines.append(f"another ring of 4 waits: {refusal.reason}")
    cluster.release("training")
    lines.append(f"training has ended: {cluster.num_free} GPUs are free")
    return "\n".join([*lines, ""])


@pytest.fixture(scope="session")
def machine(repository: Path) -> str:
    """What nvidia-smi prints on the machine of the examples."""
    return (repository / "examples/dgx1.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("compiler", "options"), [("cc", ["-std=c99"]), ("c++", ["-x", "c++", "-std=c++20"])], ids=["C", "C++"]
)
def test_example_in_c(
    build: Build, repository: Path, machine: str, compiler: str, options: list[str]
) -> None:
    source = repository / "examples/c/place.c"
    program = build(source, *options, compiler=compiler)
    assert run([program, sys.prefix], {}, machine) == expected(machine)
    assert run([program], {"TOPOPLACE_PYTHON": sys.prefix, "PYTHONHOME": "/nowhere"}, machine) == expected(
        machine
    )
    assert run([program], {}, machine) == expected(machine)  # the Python it was built with
    newer = re.sub("NV[12]", "NV18", machine)
    assert run([program, sys.prefix, '{"gpu_model": "H100"}'], {}, newer) == expected(newer, "H100")


def test_example_with_find_package(repository: Path, prefix: Path, tmp_path: Path, machine: str) -> None:
    run(
        [
            "cmake",
            "-S",
            repository / "examples/c",
            "-B",
            tmp_path,
            "-G",
            "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}",
        ]
    )
    run(["ninja", "-C", tmp_path])
    assert run([tmp_path / "place", sys.prefix], {}, machine) == expected(machine)


@pytest.fixture
def go(shared_library: Path, prefix: Path, tmp_path: Path) -> Callable[..., str]:
    """Returns a function that calls the Go compiler, which finds the library by pkg-config."""
    for tool in ("go", "pkg-config"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    environment = {
        "PATH": TOOLS,
        "HOME": str(tmp_path),
        "GOCACHE": str(prefix.parent / "go-cache"),
        "GO111MODULE": "off",
        "PKG_CONFIG_PATH": str(shared_library.parent / "pkgconfig"),
        "LD_LIBRARY_PATH": str(shared_library.parent),
    }
    return lambda *words, **more: run(["go", *words], {**environment, **more})


@pytest.mark.deep  # compiles Go's own libraries
def test_example_in_go(
    go: Callable[..., str], repository: Path, shared_library: Path, tmp_path: Path, machine: str
) -> None:
    go("build", "-o", tmp_path / "place", repository / "examples/go/place.go")
    loader = {"LD_LIBRARY_PATH": str(shared_library.parent)}
    assert run([tmp_path / "place", sys.prefix], loader, machine) == expected(machine)
    newer, model = re.sub("NV[12]", "NV18", machine), '{"gpu_model": "H100"}'
    assert run([tmp_path / "place", sys.prefix, model], loader, newer) == expected(newer, "H100")


@pytest.mark.deep
def test_goroutines(go: Callable[..., str], repository: Path, tmp_path: Path) -> None:
    for source in (repository / "examples/go/place.go", Path(__file__).parent / "goroutines_test.go"):
        shutil.copy(source, tmp_path)
    sources = sorted(tmp_path.glob("*.go"))
    machine = str(repository / "examples/dgx1.txt")
    assert "ok" in go("test", "-vet=off", *sources, TOPOPLACE_PYTHON=sys.prefix, MACHINE=machine)


# ---- the process -----------------------------------------------------------------------------------------------


@pytest.fixture
def standalone(build: Build) -> Callable[[str], str]:
    """Returns a function that runs a mode of standalone.c."""
    program = build(Path(__file__).parent / "standalone.c", "-std=c99")
    return lambda mode: run([program, mode, sys.prefix, "dgx1-v100"], {})


def test_many_threads(standalone: Callable[[str], str]) -> None:
    not_started, free = standalone("threads").splitlines()
    assert not_started == "topoplace_start has not succeeded yet"
    assert free == "8 GPUs are free"
    assert standalone("starts") == "started\n"


def test_no_signal_handler_is_installed(standalone: Callable[[str], str]) -> None:
    assert standalone("signals") == ""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure memory")
def test_memory_stays_flat(standalone: Callable[[str], str]) -> None:
    """One object of Python in each of 10,000 rounds would be 500 kB, what Python keeps of 500 threads 2 MB."""
    _, *lines = standalone("flat").splitlines()
    grown = [int(line.partition(" kB more")[0]) for line in lines]
    assert len(grown) == 2
    assert max(grown) < 250


def test_the_library_may_be_opened_privately(build: Build, shared_library: Path) -> None:
    program = build(Path(__file__).parent / "private.c", "-std=c99", links=False)
    assert run([program, shared_library, sys.prefix], {}) == "started\n"


def test_a_missing_python_is_named(build: Build, repository: Path, tmp_path: Path, machine: str) -> None:
    program = build(repository / "examples/c/place.c", "-std=c99")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"

    def refusal(prefix: Path) -> str:
        done = subprocess.run(
            [program, prefix], input=machine, capture_output=True, text=True, check=False, env={}
        )
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr.strip()

    empty = tmp_path / "empty"
    assert refusal(empty) == f"place: python = {empty}: there is no such directory (status 9)"
    (empty / "bin").mkdir(parents=True)
    assert refusal(empty) == f"place: python = {empty}: it has no bin/python3 (status 9)"
    os.symlink(sys.executable, empty / "bin/python3")
    assert refusal(empty).startswith(
        f"place: python = {empty}: it has no lib/{version}, and this library was"
    )
    (empty / "lib" / version).mkdir(parents=True)
    assert "it is no virtual environment, and has no lib/" in refusal(empty)
    (empty / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n", "utf-8")
    missing = f"topoplace cannot be imported by the Python of {empty}: ModuleNotFoundError: No module named 'topoplace'"
    assert refusal(empty) == f"place: {missing} (status 9)"
    (empty / "pyvenv.cfg").write_text(f"home = {tmp_path / 'removed'}\n", "utf-8")
    assert refusal(empty).endswith("(status 9)")
