"""Test tools for authors of policies; see docs/testing.md.

`check_policy` checks the contract that every policy must fulfil, `check_placement` one placement. `reference_place`
finds the best placement of a small job by brute force. `topoplace.testing.strategies` and
`topoplace.testing.policy_machine` are for hypothesis.
"""

from __future__ import annotations

from topoplace.testing.invariants import Report, check_policy
from topoplace.testing.placements import check_placement
from topoplace.testing.reference import reference_place

__all__ = ["Report", "check_placement", "check_policy", "reference_place"]
