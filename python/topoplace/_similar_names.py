"""Suggestions of known names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3
_MOST_CHARACTERS = 60
_LEAST_SIMILARITY = 0.6


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question whether `name` means one of up to three known names that contain it or are similar; "" if
    none is.
    """
    from difflib import get_close_matches  # here, as most starts of the command line need no suggestion

    known, lower = tuple(known), name[:_MOST_CHARACTERS].lower()
    within = [one for one in known if lower and lower in one.lower()]
    close = within or get_close_matches(lower, known, n=_MOST, cutoff=_LEAST_SIMILARITY)
    return f"did you mean {' or '.join(close[:_MOST])}?" if close else ""


def not_one_of(name: str, known: Iterable[str]) -> str:
    """Return an error message for an unknown name, which lists the known names and suggests similar ones."""
    known = tuple(known)
    hint = did_you_mean(name, known)
    return f"not one of {', '.join(known)}" + (f"; {hint}" if hint else "")
