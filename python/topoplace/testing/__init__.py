"""Test tools for authors of policies; see docs/testing.md.

`check_policy` checks the contract that every policy must fulfil, `check_placement` one placement, `verify_decision`
also its time, bound and proof. `reference_place` finds the best placement of a small job by brute force.
`topoplace.testing.strategies` and `topoplace.testing.policy_machine` are for hypothesis.

To change:

- What `check_policy` checks: over all cases `invariants.py`; answers and plans, and that they are the same again
  (determinism), `decisions.py`; one placement `placements.py`; claims of proofs `reference.py`; another hash seed
  `second_process.py`. Then add a faulty policy for the clause to `tests/support/policy_mutants.py`.
- What `verify_decision` checks: `verified.py`; the definition of communication time: `recomputed_time.py`.
"""

from __future__ import annotations

from topoplace.testing.invariants import Report, check_policy
from topoplace.testing.placements import check_placement
from topoplace.testing.reference import reference_place
from topoplace.testing.verified import Verified, verify_decision

__all__ = ["Report", "Verified", "check_placement", "check_policy", "reference_place", "verify_decision"]
