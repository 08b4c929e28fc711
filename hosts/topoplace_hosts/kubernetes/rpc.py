"""The package grpc, which has no types."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

grpc: Final[Any] = import_module("grpc")

ALONE: Final = (("grpc.use_local_subchannel_pool", 1),)
"""Option of a channel: it does not inherit the back-off of an earlier channel to the same socket."""
