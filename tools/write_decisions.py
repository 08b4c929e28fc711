"""Write tests/policies/kept/: what each built-in policy decides in the streams of tests/support/decision_streams.py.

python tools/write_decisions.py             all policies, a few seconds
python tools/write_decisions.py topo-aware  these only
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import kept_decisions as kept


def main() -> int:
    """Write the files that the arguments name; all of them, and no others, without arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("policies", nargs="*", help="names of files in tests/policies/kept; all by default")
    given = parser.parse_args()
    if not given.policies:
        kept.FOLDER.mkdir(exist_ok=True)
        for path in kept.FOLDER.glob("*.txt"):
            path.unlink()
    kept.write(kept.ASKED, kept.asked)
    for name in kept.VARIANTS:
        if not given.policies or kept.path_of(name).stem in given.policies:
            kept.write(name, partial(kept.decisions, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
