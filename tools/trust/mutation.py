"""Small faults in the code that decides, and those that no test finds, each explained by hand.

The faults and the tests that see them are those of `make mutants`. A survivor is kept with two fields that people fill
in: `why` it survives, and whether it is `equal`, that is, changes no answer. They outlast a new measurement.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mutants import Copy, Mutant, PythonTests, attempt, mutants_of, sample
from trust.kept import REPOSITORY, Bar, Kept, share, table, write

NAME = "mutants"
HELP = "Python: small faults that the tests find (an hour of CPU time)"
LEAST = 90.0
FOLDERS = ("engine", "policies", "cluster")
IDENTITY = ("file", "text", "nth", "column", "old", "new")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line says about this part."""
    parser.add_argument("folders", nargs="*", help=f"of {', '.join(FOLDERS)}; all by default")
    parser.add_argument("--count", type=int, default=60, help="how many mutants of each folder to draw (60)")
    parser.add_argument("--seed", type=int, default=0, help="which ones to draw (0)")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests for a mutant (30)")
    parser.add_argument(
        "--again",
        action="store_true",
        help="only try what survived; others for what is gone",
    )


def measure(given: argparse.Namespace, kept: Kept) -> Kept:
    """Try mutants of each folder; keep each folder as soon as it is done, as this takes long."""
    copy = Copy(REPOSITORY / "build/mutants")
    tests = PythonTests(copy, given.budget)
    kept = {**dict.fromkeys(FOLDERS), **kept}
    for name in given.folders or FOLDERS:
        path = REPOSITORY / "python/topoplace" / name
        old = kept[name] or {"survivors": []}
        if given.again:
            identities = [identity(survivor) for survivor in old["survivors"]]
            mutants = [one for one in mutants_of([path]) if identity(described(one)) in identities]
            # Others take the place of those whose code is gone.
            mutants += sample([path], len(identities) - len(mutants), given.seed + 1, None)
            verdicts = Counter(old["verdicts"])
            verdicts["survived"] = 0
            kept[name] = {**old, **tried(copy, tests, mutants, verdicts, old["survivors"])}
        else:
            mutants = sample([path], given.count, given.seed, None)
            found = tried(copy, tests, mutants, Counter(), old["survivors"])
            kept[name] = {"seed": given.seed, "first": found["verdicts"], **found}
        write(NAME, {folder: about for folder, about in kept.items() if about})
    return {folder: about for folder, about in kept.items() if about}


def tried(
    copy: Copy,
    tests: PythonTests,
    mutants: Sequence[Mutant],
    verdicts: Counter[str],
    known: Sequence[Kept],
) -> Kept:
    """Try mutants; return `verdicts` with theirs, and the survivors, explained as the `known` ones are."""
    explained = {identity(one): one for one in known}
    survivors: list[Kept] = []
    for mutant in mutants:
        verdict = attempt(copy, tests, mutant)
        print(f"{verdict:8} {mutant}", flush=True)
        verdicts[verdict] += 1
        if verdict == "survived":
            about = described(mutant)
            survivors.append(explained.get(identity(about), about))
    return {"verdicts": dict(sorted(verdicts.items())), "survivors": survivors}


def described(mutant: Mutant) -> Kept:
    """Return a mutant by its line's text, which outlasts changes elsewhere in the file; not explained.

    `nth` tells lines of the same text apart, from 0.
    """
    text = (REPOSITORY / mutant.path).read_text("utf-8")
    begin = text.rfind("\n", 0, mutant.begin) + 1
    line = text[begin:].split("\n", 1)[0]
    nth = [other.strip() for other in text[:begin].splitlines()].count(line.strip())
    column = mutant.begin - begin - (len(line) - len(line.lstrip()))
    about = (str(mutant.path), line.strip(), nth, column, mutant.old, mutant.new)
    return {**dict(zip(IDENTITY, about, strict=True)), "equal": None, "why": ""}


def identity(survivor: Kept) -> tuple[object, ...]:
    """Return what makes two survivors the same fault."""
    return tuple(survivor[name] for name in IDENTITY)


def unexplained(kept: Kept) -> list[str]:
    """Return the lines of survivors that nobody has explained."""
    survivors = [one for about in kept.values() for one in about["survivors"]]
    return [f"{one['file']}: {one['text']}" for one in survivors if not one["why"] or one["equal"] is None]


def scores(about: Kept) -> tuple[int, int, int]:
    """Return how many mutants of a folder were tried, were detected, and change no answer."""
    drawn, detected = counts(about["verdicts"])
    return drawn, detected, sum(one["equal"] is True for one in about["survivors"])


def counts(verdicts: Mapping[str, int]) -> tuple[int, int]:
    """Return how many mutants were tried, and how many were detected."""
    drawn = sum(verdicts.values())
    return drawn, drawn - verdicts.get("survived", 0)


def bars(kept: Kept) -> list[Bar]:
    """Return a line of the first table for each folder."""
    lines = []
    for name, about in kept.items():
        drawn, detected, _ = scores(about)
        reached = 100 * detected >= LEAST * drawn
        measured = f"{share(detected, drawn)}; {share(counts(about['first'])[1], drawn)} at first"
        lines.append(Bar(f"mutants of `{name}` detected", f"{LEAST:.0f} %", measured, reached))
    return lines


def section(kept: Kept) -> str:
    """Return the section of the page."""
    rows = []
    for name, about in kept.items():
        drawn, detected, equal = scores(about)
        others = drawn - detected - equal
        first, changing = counts(about["first"])[1], share(detected, drawn - equal)
        rows.append((f"`{name}`", drawn, first, detected, share(detected, drawn), equal, others, changing))
    heads = (
        "mutants of",
        "drawn",
        "detected at first",
        "detected now",
        "share",
        "change no answer",
        "survive otherwise",
        "share without the former",
    )
    survivors = [one for about in kept.values() for one in about["survivors"]]
    equal = [explained(one) for one in survivors if one["equal"]]
    others = [explained(one) for one in survivors if not one["equal"]]
    seeds = ", ".join(str(seed) for seed in sorted({about["seed"] for about in kept.values()}))
    return f"""## Mutants

`make mutants` plants a small fault (`<` for `<=`, a number that is one more, a statement left out) and runs the tests
that execute its line; [Measuring](measuring.md#mutants) describes the tool, and has figures for C++. A
mutant is detected if a test fails or runs for too long. The mutants were drawn at random (seed {seeds}). Tests were
then added for survivors. `detected now` is what the tests find of these faults; of faults that nobody has looked at,
expect the share that was `detected at first`.

{table(heads, rows)}
Survivors that change no answer:

{table(("where", "fault", "why"), equal)}{_changing(others)}"""


def _changing(rows: Sequence[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    heads = ("where", "fault", "what would find it")
    return f"\nSurvivors that change an answer or a cost:\n\n{table(heads, rows)}"


def explained(survivor: Kept) -> tuple[str, str, str]:
    """Return the cells of a survivor."""
    name = Path(survivor["file"]).relative_to("python/topoplace")
    old, new = (" ".join(survivor[key].split()) for key in ("old", "new"))
    fault = f"`{old}` → `{new}`" if new else f"without `{old}`"
    return f"`{name}`: `{survivor['text']}`", fault, survivor["why"]
