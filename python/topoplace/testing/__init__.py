"""Test tools for authors of policies: `check_policy` checks the contract that every policy must fulfil."""

from __future__ import annotations

from topoplace.testing.invariants import Report, check_policy

__all__ = ["Report", "check_policy"]
