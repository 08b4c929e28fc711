"""`tools/real_host.sh`, which needs a GPU for most of what it tries, says so without one, and finds what differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MATRIX = r"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"


@pytest.mark.parametrize(
    ("matrix", "code", "line"),
    [
        (MATRIX, 0, "ok          read-nvidia-smi-topo-m "),
        ("nothing that a reader knows", 1, "differs     read-nvidia-smi-topo-m "),
    ],
)
def test_a_host_whose_tool_prints_a_matrix(
    tmp_path: Path, repository: Path, matrix: str, code: int, line: str
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'topo -m' ] || exit 9\nprintf '{matrix}'\n", "utf-8")
    tool.chmod(0o755)
    done = subprocess.run(
        ["bash", str(repository / "tools/real_host.sh"), str(tmp_path / "texts")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "TOPOPLACE": str(Path(sys.executable).with_name("topoplace")),
            "PYTHON": sys.executable,
        },
    )
    assert line in done.stdout
    assert "not there   nvidia-smi-q " in done.stdout
    assert done.returncode == code
