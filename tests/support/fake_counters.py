# ruff: noqa: N802
"""A library and a program in the place of NVML and DCGM, for recordings of counters."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

LINKS = {0: [1, 1, 2], 1: [0, 0, 3], 2: [0, 3, 3], 3: [1, 2, 2]}
DMON = """#Entity   PCITX   NVLTX
ID
GPU 0     1000000   N/A
GPU 1     2000000   5000000
"""


class Library:
    """NVML with four GPUs; every reading of NVLink i of GPU g adds (g + 1) * (i + 1) KiB to its counter."""

    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138

    class NVMLError(Exception):
        pass

    def __init__(self, *, switched: bool = False, silent: bool = False) -> None:
        self.switched, self.silent = switched, silent
        self.readings: dict[int, Any] = {gpu: count() for gpu in LINKS}

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return len(LINKS)

    def nvmlDeviceGetHandleByIndex(self, gpu: int) -> int:
        return gpu

    def nvmlDeviceGetPciInfo(self, gpu: int) -> SimpleNamespace:
        return SimpleNamespace(busId=f"0000:0{gpu}")

    def nvmlDeviceGetNvLinkState(self, gpu: int, link: int) -> int:
        if self.silent or link >= len(LINKS[gpu]):
            raise self.NVMLError("not supported")
        return 1

    def nvmlDeviceGetNvLinkRemotePciInfo(self, gpu: int, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId="switch" if self.switched else f"0000:0{LINKS[gpu][link]}")

    def nvmlDeviceGetFieldValues(self, gpu: int, fields: list[tuple[int, int]]) -> list[SimpleNamespace]:
        times = next(self.readings[gpu])
        values = [times * (gpu + 1) * (link + 1) for field, link in fields if field == 138]
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=value)) for value in values]

    def nvmlDeviceGetPcieThroughput(self, gpu: int, kind: int) -> int:
        if self.silent:
            raise self.NVMLError("not supported")
        return 10


def put_nvml(monkeypatch: pytest.MonkeyPatch, library: Library | None) -> None:
    """Make `import pynvml` return the library; None: it is not installed."""
    monkeypatch.setitem(sys.modules, "pynvml", library)


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n".replace("cat", "/bin/cat"))
    path.chmod(0o755)
