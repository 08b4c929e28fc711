"""The page of trust: a function of what is kept, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from trust.kept import Kept, table

INTRODUCTION = """# How far to trust it

What the tests of this repository reach, in numbers. `make trust` measures them and keeps them in
`tools/trust/measured/`. [Measuring](measuring.md) describes the tools, [Papers](papers/README.md) what the results are
held against.

`tools/real_host.sh` tries on a host with GPUs, in a few minutes, what needs one. It has run on a host with one H200; no
host with several GPUs was at hand.
"""


def page(parts: Mapping[str, ModuleType], kept: Mapping[str, Kept]) -> str:
    """Return the page of the parts that were measured."""
    measured = [name for name in parts if kept[name]]
    bars = [bar for name in measured for bar in parts[name].bars(kept[name])]
    rows = [(bar.what, bar.demanded, bar.measured, "yes" if bar.reached else "**no**") for bar in bars]
    sections = [parts[name].section(kept[name]) for name in measured]
    return "\n".join([INTRODUCTION, table(("what", "we demand", "measured", "reached"), rows), *sections])
