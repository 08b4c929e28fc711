"""What third parties test their work with: `check_policy`, the contract every policy has to keep."""

from __future__ import annotations

from topoplace.testing.invariants import Report, check_policy

__all__ = ["Report", "check_policy"]
