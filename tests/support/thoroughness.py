"""How much a test does: enough for each change, or with `--hypothesis-profile=deep` as much as a night allows."""

from __future__ import annotations

from hypothesis import settings


def thorough(deep: int, otherwise: int) -> int:
    """`deep` under the profile of that name, and `otherwise` under any other."""
    return deep if settings.get_current_profile_name() == "deep" else otherwise


def for_each_policy() -> settings:
    """How many examples a test sees that is repeated for every policy: they share most of what it tries."""
    return settings(max_examples=thorough(5000, 30))
