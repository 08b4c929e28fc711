"""Check that wheels contain the package, its metadata and the list of its parts, and nothing else."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BELONGS = re.compile(
    r"topoplace/(?!_core\.)[\w/]+\.py|topoplace/_core\.[\w-]+\.so|topoplace/_core\.pyi|topoplace/py\.typed"
    r"|topoplace/discovery/unread_tools\.toml|topoplace/cli/explorer/(?:page\.(?:html|css|js)|(?:words|server|drawing|queue)\.js)"
    r"|topoplace-[\d.]+\.data/data/share/man/man1/topoplace\.1"
    r"|topoplace-[\d.]+\.dist-info/(?:METADATA|RECORD|WHEEL|entry_points\.txt|licenses/LICENSE|sboms/[\w.-]+\.json)"
)
REQUIRED = {
    "topoplace/__init__.py": r"topoplace/__init__\.py",
    "topoplace/_core.pyi": r"topoplace/_core\.pyi",
    "topoplace/py.typed": r"topoplace/py\.typed",
    "topoplace/_core*.so": r"topoplace/_core\..*so",
    "the table of tools that are not read": r"topoplace/discovery/unread_tools\.toml",
    "the page of explore": r"topoplace/cli/explorer/page\.html",
    "the manual page": r".*/man1/topoplace\.1",
    "the list of parts": r".*\.dist-info/sboms/topoplace\.cdx\.json",
}


def wrong_parts(bom: dict[str, Any], version: str) -> Iterator[str]:
    """Yield what is wrong with a wheel's list of parts (PEP 770, CycloneDX); version: the wheel's."""
    if bom.get("bomFormat") != "CycloneDX":
        yield "the list of parts is not CycloneDX"
    parts = {part["name"]: part for part in [bom["metadata"]["component"], *bom["components"]]}
    for name in ("topoplace", "pybind11"):
        if name not in parts:
            yield f"the list of parts lacks {name}"
    for name, part in parts.items():
        if not re.fullmatch(r"\d[\w.]*", part["version"]):
            yield f"the list of parts: {name} has the version {part['version']!r}"
        if part["purl"] != f"pkg:pypi/{name}@{part['version']}":
            yield f"the list of parts: {name} has the purl {part['purl']!r}"
    if parts.get("topoplace", {}).get("version") != version:
        yield f"the list of parts is that of another version than {version}"


def faults(path: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel, a line for each fault."""
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]  # auditwheel adds folders
        yield from (f"{name}: does not belong" for name in names if not BELONGS.fullmatch(name))
        for what, pattern in REQUIRED.items():
            if not any(re.fullmatch(pattern, name) for name in names):
                yield f"{what}: missing"
        for name in names:
            if name.endswith("/sboms/topoplace.cdx.json"):
                yield from wrong_parts(json.loads(wheel.read(name)), path.name.split("-")[1])


def main(directory: str) -> int:
    """Check all wheels in `directory`; return 1 if there is none or one has a fault, else 0."""
    wheels = sorted(Path(directory).glob("*.whl"))
    if not wheels:
        print(f"{directory}: no wheels")
    found = {path: list(faults(path)) for path in wheels}
    for path, wrong in found.items():
        print(*(f"{path.name}: {fault}" for fault in wrong), f"{path.name}: checked", sep="\n")
    return int(not wheels or any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
