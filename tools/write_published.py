"""Write docs/published.md from docs/published/measurements.json: what is planned beside what others measured.

python tools/write_published.py          compute what is planned, and write the page, in seconds
python tools/write_published.py --check  say whether the page is that of the measurements and of this library
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from published import page

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "published.md"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it; return 1 if it differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args(arguments).check:
        return check()
    PAGE.write_text(page.page(facts()), "utf-8")
    return 0


def facts() -> dict[str, Any]:
    """Return what was published."""
    found: dict[str, Any] = json.loads((DOCS / "published/measurements.json").read_text("utf-8"))
    return found


def check() -> int:
    """Return 1, and say so, if the page is another one."""
    if PAGE.exists() and PAGE.read_text("utf-8") == page.page(facts()):
        return 0
    print("docs/published.md is not current: run python tools/write_published.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
