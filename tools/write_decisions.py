"""Write tests/policies/kept/: what each built-in policy decides in the streams of tests/support/decision_streams.py.

python tools/write_decisions.py             all policies, a few seconds
python tools/write_decisions.py topo-aware  only these, and streams.txt
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
    stems = {kept.path_of(name).stem: name for name in kept.VARIANTS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "policies", nargs="*", metavar="POLICY", help=f"all by default, or of: {', '.join(stems)}"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.policies) - stems.keys()):
        parser.error(f"unknown: {', '.join(unknown)}")
    kept.FOLDER.mkdir(exist_ok=True)
    kept.write(kept.ASKED, kept.asked)
    for stem in given.policies or stems:
        kept.write(stems[stem], partial(kept.decisions, stems[stem]))
    if not given.policies:
        for path in set(kept.FOLDER.iterdir()) - kept.paths():
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
