"""Sources of solvers that no package index has: fetched at a fixed commit, checked, and built.

They come from GitHub by git, or from `TOPOPLACE_NATIVE_SOURCES`: a folder with a repository of each name in it, or the
address of another place that has `<owner>/<name>`. Nothing of them belongs to this repository.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PLACE = os.environ.get("TOPOPLACE_NATIVE_SOURCES", "https://github.com")
COMPILER = os.environ.get("CXX", "c++")


class Source(NamedTuple):
    """A repository at one commit."""

    repository: str
    """Owner and name on GitHub."""
    commit: str
    paths: tuple[str, ...]
    """The files and folders that are needed."""
    digest: str
    """SHA-256 of the names and contents of these files."""

    @property
    def name(self) -> str:
        """The repository's name without its owner."""
        return self.repository.partition("/")[2]

    @property
    def folder(self) -> str:
        """A name for what belongs to this commit."""
        return f"{self.name}-{self.commit[:7]}"


def fetched(source: Source, build: Path) -> Path:
    """Return a folder with the source's files; ValueError if they are not those that were pinned."""
    folder = build / source.folder
    git = repository(source, build)
    archive = subprocess.run(
        ["git", "-C", git, "archive", source.commit, *source.paths], check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {
            member.name: content.read() for member in tar.getmembers() if (content := tar.extractfile(member))
        }
    found = digest(files)
    if found != source.digest:
        raise ValueError(
            f"{source.repository} at {source.commit}: files have digest {found}, not {source.digest}"
        )
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def repository(source: Source, build: Path) -> Path:
    """Return a git repository that has the source's commit."""
    if Path(PLACE).is_dir():
        return Path(PLACE) / source.name
    git = build / f"{source.folder}.git"
    if subprocess.run(["git", "-C", git, "cat-file", "-e", source.commit], check=False).returncode:
        address = f"{PLACE}/{source.repository}"
        subprocess.run(["git", "init", "--quiet", "--bare", git], check=True)
        subprocess.run(
            ["git", "-C", git, "fetch", "--quiet", "--depth=1", address, source.commit], check=True
        )
    return git


def digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files: of each name and each content's own SHA-256, in the order of names."""
    lines = [f"{name} {hashlib.sha256(files[name]).hexdigest()}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def compiled(program: Path, *arguments: str) -> Path:
    """Build a program from within its folder, unless it is there; return it."""
    if not program.exists():
        command = [COMPILER, "-w", "-O3", "-DNDEBUG", *arguments, "-o", program.name]
        subprocess.run(command, cwd=program.parent, check=True)
    return program
