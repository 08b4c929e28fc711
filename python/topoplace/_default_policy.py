"""The name of the default policy, here alone so that the command line knows it without loading policies."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = "least-time"
"""The policy of whatever decides and is not asked for another; also `policies.DEFAULT`."""
