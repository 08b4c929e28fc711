"""The meaning of Slurm's node states for a job that needs GPUs.

The words are those of `sinfo`, short and long, of `scontrol show node` and of its JSON; the signs stand after a word.
Source: sinfo(1), section NODE STATE CODES, and the names of the node's flags in slurm_protocol_defs.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache


class Meaning(Enum):
    """What Slurm does with a node in such a state; the value is the start of the note on these nodes."""

    OPEN = ""
    CLOSED = "Nodes on which Slurm starts nothing, whose GPUs are unhealthy"
    POWERED_UP_FIRST = "Nodes that are off or starting; jobs get their GPUs once Slurm has powered them up"
    RESERVED = "Nodes in a reservation, which only its jobs get"
    PLANNED = (
        "Nodes that Slurm keeps for jobs of higher priority; others get them for the time until these start"
    )
    UNKNOWN = "States of nodes that topoplace does not know, and takes for open"


_SILENT = ("not_responding", "no_respond", "*")
"""A node that does not answer is closed, unless it is off or starting."""
_CLOSED = (
    "down drain drained draining drng fail failing failg error maint maintenance $ future futr inval invalid "
    "invalid_reg unknown unk blocked perfctrs npc reboot reboot_issued reboot_requested boot ^ @ power_down pow_dn "
    "power_drain powering_down powring_dn ! %"
)
"""States of closed nodes, including nodes that are about to reboot or to lose power."""
_MEANING = {
    word: meaning
    for meaning, words in (
        (Meaning.CLOSED, " ".join((_CLOSED, *_SILENT))),
        (Meaning.POWERED_UP_FIRST, "power powered_down powered_dn ~ power_up pow_up powering_up #"),
        (Meaning.RESERVED, "reserved resv"),
        (Meaning.PLANNED, "planned plnd -"),
        (
            Meaning.OPEN,
            "idle mixed mix allocated alloc completing comp cloud dynamic_norm dynamic_future external resume resm "
            "undrain reboot_canceled cancel_reboot canc_r",
        ),
    )
    for word in words.split()
}
_SEPARATOR = re.compile(r"[+,\s]+")
_SIGNS = "*~#!%$@^-"
_SHORTEST_CUT = 3
"""Least number of letters by which a word cut off by a narrow column is recognised."""


@lru_cache(maxsize=1024)
def meanings(state: str) -> Mapping[Meaning, str]:
    """Return what a state such as "IDLE+CLOUD+POWERED_DOWN" or "mix*" means, each with the first word that says it.

    A closed node has no other meaning.
    """
    found: dict[Meaning, str] = {}
    silent = ""
    for word in filter(None, _SEPARATOR.split(state)):
        name = word.lower().rstrip(_SIGNS)
        for part in filter(None, (name, *word[len(name) :])):
            if part in _SILENT:
                silent = silent or word
            else:
                found.setdefault(_meaning(part), word)
    if silent and Meaning.POWERED_UP_FIRST not in found:
        found.setdefault(Meaning.CLOSED, silent)
    closed = found.get(Meaning.CLOSED)
    return found if closed is None else {Meaning.CLOSED: closed}


def is_state(word: str) -> bool:
    """Return True if a word such as "mix*" is a known state."""
    found = meanings(word)
    return word[:1].isalpha() and bool(found) and Meaning.UNKNOWN not in found


def _meaning(word: str) -> Meaning:
    """Return the meaning of a word or sign; of a word that a column has cut, the strictest of those it may be."""
    if word in _MEANING:
        return _MEANING[word]
    whole = [one for known, one in _MEANING.items() if known.startswith(word) and len(word) >= _SHORTEST_CUT]
    return next(iter(whole), Meaning.UNKNOWN)
