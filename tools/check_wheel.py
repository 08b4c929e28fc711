"""Check that the wheel contains the package and its metadata, and nothing else."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

BELONGS = re.compile(
    r"topoplace/(?!_core\.)[\w/]+\.py|topoplace/_core\.[\w-]+\.so|topoplace/_core\.pyi|topoplace/py\.typed"
    r"|topoplace/integrations/slurm/files/[\w-]+\.(?:lua|sh|service|timer)"
    r"|topoplace/report/page/page\.(?:html|css|js)"
    r"|topoplace-[\d.]+\.data/data/share/man/man1/topoplace\.1"
    r"|topoplace-[\d.]+\.dist-info/.+"
)


def main(directory: str) -> int:
    """Check the only wheel in `directory`; return 1 if a file does not belong or a required one is missing, else 0."""
    (wheel,) = Path(directory).glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    strangers = [name for name in names if not BELONGS.fullmatch(name)]
    missing = [
        name
        for name in ("topoplace/__init__.py", "topoplace/_core.pyi", "topoplace/py.typed")
        if name not in names
    ]
    for ending, what in ((".so", "topoplace/_core*.so"), ("/man1/topoplace.1", "the manual page")):
        if not any(name.endswith(ending) for name in names):
            missing.append(what)
    for word, wrong in (("does not belong", strangers), ("missing", missing)):
        for name in wrong:
            print(f"{wheel.name}: {name}: {word}")
    print(f"{wheel.name}: {len(names)} files")
    return int(bool(strangers or missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
