"""Check the size and complexity of functions: a hard limit for each, and a tighter one for nine in ten."""

from __future__ import annotations

import sys

import lizard

MAX_LINES, MAX_COMPLEXITY = 60, 15
AIM_LINES, AIM_COMPLEXITY, AIM_SHARE = 25, 8, 0.90


def main(paths: list[str]) -> int:
    """Analyse every C++ and Python function below `paths` and return 1 if a limit is exceeded, else 0."""
    functions = [
        (f.length, f.cyclomatic_complexity, f"{file.filename}:{f.start_line} {f.name}")
        for file in lizard.analyze(paths, lans=["cpp", "python"])
        for f in file.function_list
    ]
    broken = [f for f in functions if f[0] > MAX_LINES or f[1] > MAX_COMPLEXITY]
    for lines, complexity, where in broken:
        print(f"{where}: {lines} lines, complexity {complexity} (limits {MAX_LINES} and {MAX_COMPLEXITY})")
    aimed = [f for f in functions if f[0] <= AIM_LINES and f[1] <= AIM_COMPLEXITY]
    share = len(aimed) / max(1, len(functions))
    print(
        f"{len(functions)} functions, {share:.1%} within {AIM_LINES} lines and complexity {AIM_COMPLEXITY}"
        f" (at least {AIM_SHARE:.0%})"
    )
    return int(bool(broken) or share < AIM_SHARE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
