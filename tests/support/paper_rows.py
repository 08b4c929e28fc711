"""Rows of reproductions of papers."""

from __future__ import annotations

from collections.abc import Iterable

from topoplace.papers.claims import Claim


def by_id(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Return the rows by their ids, which must be unique."""
    rows = list(claims)
    found = {claim.id: claim for claim in rows}
    assert len(found) == len(rows)
    return found
