"""Write tables as files: CSV, and LaTeX with the package booktabs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from topoplace.drawing.tables import cell
from topoplace_lab.simulate.storage.tables import replacing

_LATEX: Final = {
    **{letter: rf"\{letter}" for letter in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
}


def write(columns: Sequence[str], rows: Iterable[Sequence[object]], folder: Path, name: str) -> list[Path]:
    """Write a table as `name`.csv and `name`.tex (needs LaTeX's package booktabs) into a folder; return their paths."""
    cells = [list(columns), *([cell(value) for value in row] for row in rows)]
    paths = [folder / f"{name}.csv", folder / f"{name}.tex"]
    for path in paths:
        _write(cells, path)
    return paths


def _write(cells: Sequence[Sequence[str]], path: Path) -> None:
    with replacing(path) as file, file.open("w", encoding="utf-8", newline="") as text:
        if path.suffix != ".tex":
            csv.writer(text, lineterminator="\n").writerows(cells)
            return
        lines = [" & ".join(map(_in_latex, row)) + r" \\" for row in cells]
        form = "l" + "r" * (len(cells[0]) - 1)
        begin = [rf"\begin{{tabular}}{{{form}}}", r"\toprule", lines[0], r"\midrule"]
        text.write("\n".join([*begin, *lines[1:], r"\bottomrule", r"\end{tabular}", ""]))


def _in_latex(text: str) -> str:
    """Return the text with the characters that LaTeX takes as commands replaced."""
    return "".join(_LATEX.get(letter, letter) for letter in text)
