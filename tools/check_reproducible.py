"""Check that the same sources give the same source distribution and wheel, byte by byte, wherever they lie.

The source distribution is unpacked into two directories whose paths have different lengths. In each, a source
distribution and a wheel are built with the build backend that is installed; it takes two whole compilations.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

BUILD = "from scikit_build_core.build import build_{kind}; print(build_{kind}({target!r}))"


def built(kind: str, sources: Path, target: Path) -> Path:
    """Return the `sdist` or `wheel` of `sources`, built into `target`; CalledProcessError if the build fails."""
    target.mkdir(parents=True, exist_ok=True)
    script = BUILD.format(kind=kind, target=str(target))
    log = target / "build.log"
    with log.open("w") as output:
        subprocess.run([sys.executable, "-c", script], cwd=sources, check=True, stdout=output)
    name = log.read_text("utf-8").splitlines()[-1]
    return target / name


def rebuilt(sdist: Path, place: Path) -> dict[str, str]:
    """Return the digests of what is built in `place` from an unpacked source distribution, by file name."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (sources,) = place.iterdir()
    made = [built(kind, sources, place / "dist") for kind in ("sdist", "wheel")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


def main() -> int:
    """Build twice and compare; return 1 if a file differs, else 0."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")
    repository = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        sdist = built("sdist", repository, root / "sdist")
        own = {sdist.name: hashlib.sha256(sdist.read_bytes()).hexdigest()}
        first = rebuilt(sdist, root / "a")
        second = rebuilt(sdist, root / "another" / "and-longer" / "path")
    for name, digest in first.items():
        same = digest == second.get(name) == own.get(name, digest)
        print(f"{name}: {'the same' if same else 'differs'}: {digest}")
    return int(first != second or not own.items() <= first.items())


if __name__ == "__main__":
    sys.exit(main())
