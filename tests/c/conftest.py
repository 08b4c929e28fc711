"""The C library, built and installed once for all tests and processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.c_library import CLibrary

TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run(command: Sequence[object], environment: Mapping[str, str] | None = None, stdin: str = "") -> str:
    """Run a program, and return what it prints; fail if it ends with an error, or prints something to stderr."""
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": TOOLS} if environment is None else dict(environment),
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def prefix(repository: Path) -> Path:
    """Where the C library is installed; TOPOPLACE_C_FLAGS are options for its compiler (`make sanitize-c`)."""
    if not (shutil.which("cmake", path=TOOLS) and shutil.which("ninja", path=TOOLS)):
        pytest.skip("needs cmake and ninja")
    flags = os.environ.get("TOPOPLACE_C_FLAGS", "")
    build = repository / "build" / ("c_interface_with_flags" if flags else "c_interface")
    build.mkdir(parents=True, exist_ok=True)
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of pytest-xdist
        configured = subprocess.run(
            [
                "cmake",
                "-S",
                repository,
                "-B",
                build,
                "-G",
                "Ninja",
                "-DTOPOPLACE_C=ON",
                f"-DPython_EXECUTABLE={sys.executable}",
                f"-DCMAKE_CXX_FLAGS={flags}",
            ],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": TOOLS},
        )
        if "Development.Embed" in configured.stderr:
            pytest.skip("needs the shared library and the headers of this Python")
        assert configured.returncode == 0, configured.stderr
        run(["ninja", "-C", build, "topoplace_c"])
        run(["cmake", "--install", build, "--component", "c", "--prefix", build / "prefix"])
    return build / "prefix"


@pytest.fixture(scope="session")
def shared_library(prefix: Path) -> Path:
    """The file of the library."""
    (found,) = prefix.glob("lib*/**/libtopoplace_c.so")
    return found


@pytest.fixture(scope="session")
def library(shared_library: Path) -> CLibrary:
    """The library in this process."""
    library = CLibrary(shared_library)
    library("start", None)
    return library
