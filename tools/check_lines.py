"""Compare the code lines of each package with its budget in pyproject.toml, [tool.topoplace.lines].

A code line is neither blank nor part of a comment or a docstring. A package that outgrows its budget fails; to raise
one, say in the commit what users get for it. `--write` puts today's numbers there.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("python/topoplace", "lab/topoplace_lab", "hosts/topoplace_hosts")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Return how many lines of a Python file are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines.difference(*docstrings(ast.parse(source))))


def docstrings(tree: ast.AST) -> Iterator[range]:
    """Yield the lines of the docstring of each module, class and function."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def counted() -> Counter[str]:
    """Return the code lines of each package; files beside packages count for the distribution."""
    found: Counter[str] = Counter()
    for folder in map(REPOSITORY.joinpath, FOLDERS):
        for path in folder.rglob("*.py"):
            package = path.relative_to(folder.parent).parts[:-1][:2]
            found[".".join(package)] += code_lines(path.read_text("utf-8"))
    return found


def main(arguments: list[str]) -> int:
    """Check the budgets, or write today's; return 1 if a package is over its budget, else 0."""
    settings, found = REPOSITORY / "pyproject.toml", counted()
    text = settings.read_text("utf-8")
    if arguments == ["--write"]:
        table = "".join(f'"{package}" = {lines}\n' for package, lines in sorted(found.items()))
        text = re.sub(r"(?<=\[tool\.topoplace\.lines\]\n)(?:\".*\n)*", table, text)
        settings.write_text(text, "utf-8")
        return 0
    budgets: dict[str, int] = tomllib.loads(text)["tool"]["topoplace"]["lines"]
    over = {package: lines for package, lines in found.items() if lines > budgets.get(package, 0)}
    for package, lines in sorted(over.items()):
        print(f"{package}: {lines} code lines, {budgets.get(package, 0)} allowed by pyproject.toml")
    core = sum(lines for package, lines in found.items() if package.partition(".")[0] == "topoplace")
    print(f"{found.total()} code lines, {core} of them in the core")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
