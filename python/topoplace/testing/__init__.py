"""Test tools for third parties: `check_policy`, the contract that every policy must fulfil."""

from __future__ import annotations

from topoplace.testing.invariants import Report, check_policy

__all__ = ["Report", "check_policy"]
