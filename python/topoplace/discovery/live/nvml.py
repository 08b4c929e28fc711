"""NVML on this host, by `nvidia-ml-py`."""

from __future__ import annotations

import importlib
from typing import Any

from topoplace.discovery.live.programs import NotHereError


def initialised() -> Any:
    """Return the module `pynvml`, initialised; NotHereError states why NVML cannot be used."""
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        raise NotHereError("nvidia-ml-py is not installed (pip install 'topoplace[nvml]')") from None
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise NotHereError(str(error)) from None
    return library
