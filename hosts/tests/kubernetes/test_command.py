"""`topoplace kubernetes device-plugin` as a process that is ended and killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="the extra kubernetes is not installed")

from kubelet import Kubelet

WAIT = 60.0


def started(directory: Path) -> subprocess.Popen[str]:
    command = ["-m", "topoplace", "kubernetes", "device-plugin", "dgx1-v100", "--directory", str(directory)]
    return subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)


def test_a_plugin_that_was_killed_is_replaced_and_one_that_is_asked_ends(tmp_path: Path) -> None:
    with Kubelet(tmp_path) as kubelet:
        for number in (signal.SIGKILL, signal.SIGTERM):
            process = started(tmp_path)
            with process:
                try:
                    kubelet.registrations.get(timeout=WAIT)
                    with kubelet.plugin("topoplace.sock") as calls:
                        assert len(next(calls.lists())) == 8
                        assert calls.preferred((["0", "3", "7"], ["0"], 2)) == [["0", "3"]]
                finally:
                    process.send_signal(number)
                    _, errors = process.communicate(timeout=WAIT)
            assert process.returncode == (0 if number == signal.SIGTERM else -number), errors
            assert "GPUs that break are not noticed" in errors
            assert "registered nvidia.com/gpu" in errors
        assert not (tmp_path / "topoplace.sock").exists()
