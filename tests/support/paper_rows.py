"""Rows of reproductions of papers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from topoplace_lab.papers.claims import FITTED, IDENTITY, RESULTS, PaperClaim
from topoplace_lab.papers.rules import DIFFERS

_REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(_REPOSITORY / "tools"))

from paper_pages import coverage, record  # noqa: E402

_KEPT = _REPOSITORY / "lab/tests/papers/kept"


def by_id(claims: Iterable[PaperClaim]) -> dict[str, PaperClaim]:
    """Return the rows by their ids, which must be unique."""
    rows = list(claims)
    found = {claim.id: claim for claim in rows}
    assert len(found) == len(rows)
    return found


def assert_complete(claims: Iterable[PaperClaim]) -> None:
    """Every row has all its fields and a verdict of a known kind, and says why."""
    for claim in claims:
        assert list(claim.to_dict()) == ["id", "quantity", "paper", "ours", "verdict", "why"]
        assert all(claim.to_dict().values()), claim
        assert claim.verdict in (*RESULTS, IDENTITY, FITTED), claim


def assert_kept(claims: Iterable[PaperClaim], paper: str) -> None:
    """The rows of a quick run are those in lab/tests/papers/kept/PAPER.json."""
    kept = record.read(_KEPT / f"{paper}.json").quick
    assert record.differences(kept, claims) == [], f"run python tools/write_papers.py {paper}"


def assert_claims_kept(claims: Iterable[PaperClaim], paper: str) -> None:
    """The rows that the quick run in lab/tests/papers/kept/PAPER.json has compare the same, with the same number."""
    kept = {row.id: row for row in record.read(_KEPT / f"{paper}.json").quick}
    both = [(claim, kept[claim.id]) for claim in claims if claim.id in kept]
    assert len(both) == len(kept)
    assert [(row.quantity, row.paper) for _, row in both] == [
        (claim.quantity, claim.paper) for claim, _ in both
    ]
    same = [(row.ours, claim.ours) for claim, row in both if claim.verdict == IDENTITY and not row.machine]
    assert [kept for kept, _ in same] == [now for _, now in same]


def assert_covered(claims: Iterable[PaperClaim], paper: str, not_here: Sequence[str] = ()) -> None:
    """Every row belongs to a part of the paper in tools/paper_pages/PAPER.toml, and every part's rows exist.

    not_here: beginnings of ids that only a full run or another option prints.
    """
    ids = [claim.id for claim in claims]
    listed = [row for part in coverage.of_paper(paper).parts for row in part.rows]
    assert [name for name in ids if not name.startswith(tuple(listed))] == []
    assert [row for row in listed if not any(name.startswith(row) for name in (*ids, *not_here))] == []


def assert_rules_can_fail(claims: Iterable[PaperClaim], wrong: Mapping[str, tuple[object, ...]]) -> None:
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
