"""How much a test does: enough for each change, or with `--hypothesis-profile=deep` as much as a night allows."""

from __future__ import annotations

from hypothesis import settings


def thorough(deep: int, otherwise: int) -> int:
    """`deep` under the profile of that name, and `otherwise` under any other."""
    return deep if settings.get_current_profile_name() == "deep" else otherwise
