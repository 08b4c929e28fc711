"""Rows of reproductions of papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from topoplace.papers.claims import FITTED, IDENTITY, RESULTS, Claim
from topoplace.papers.coverage import Part
from topoplace.papers.rules import DIFFERS


def by_id(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Return the rows by their ids, which must be unique."""
    rows = list(claims)
    found = {claim.id: claim for claim in rows}
    assert len(found) == len(rows)
    return found


def assert_complete(claims: Iterable[Claim]) -> None:
    """Every row has all its fields and a verdict of a known kind, and says why."""
    for claim in claims:
        assert list(claim.to_dict()) == ["id", "quantity", "paper", "ours", "verdict", "why"]
        assert all(claim.to_dict().values()), claim
        assert claim.verdict in (*RESULTS, IDENTITY, FITTED), claim


def assert_covered(claims: Iterable[Claim], parts: Sequence[Part], not_here: Sequence[str] = ()) -> None:
    """Every row belongs to a part of the paper, and every part's rows exist.

    not_here: beginnings of ids that only a full run or another option prints.
    """
    ids = [claim.id for claim in claims]
    listed = [row for part in parts for row in part.rows]
    assert [name for name in ids if not name.startswith(tuple(listed))] == []
    assert [row for row in listed if not any(name.startswith(row) for name in (*ids, *not_here))] == []


def assert_rules_can_fail(claims: Iterable[Claim], wrong: Mapping[str, tuple[object, ...]]) -> None:
    """Every rule says `differs` of wrong values.

    wrong: values by the beginning of a row's id, the longest that fits; each entry must fit a row.
    """
    used = set()
    for claim in claims:
        if claim.rule is None:
            continue
        key = max((key for key in wrong if claim.id.startswith(key)), key=len, default=None)
        assert key is not None, f"no wrong values for {claim.id}"
        used.add(key)
        assert claim.rule.verdict(*wrong[key]) == DIFFERS, (claim.id, claim.rule)
    assert used == set(wrong)
