"""Write docs/papers/: which parts of each paper are reproduced; with --check, only compare the pages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from topoplace.papers.coverage import page

PAPERS = ("sc17", "tsubame", "mapa", "gpuaas", "drmaestro")
FOLDER = Path(__file__).parents[1] / "docs/papers"


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them; return 1 if one differs."""
    FOLDER.mkdir(exist_ok=True)
    differs = []
    for paper in PAPERS:
        coverage = importlib.import_module(f"topoplace.papers.{paper}.coverage")
        path, text = FOLDER / f"{paper}.md", page(paper, coverage.TITLE, coverage.PARTS)
        if not path.exists() or path.read_text("utf-8") != text:
            differs.append(path.name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    if differs and "--check" in arguments:
        print(
            f"docs/papers: {', '.join(differs)} not current: run python tools/write_coverage.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
