"""Run a command, such as the tests, next to another version of Slurm: inside a Debian release that has it, by chroot.

`python tools/slurm_roots.py build/slurm 24.11 python -m pytest hosts/tests/slurm` makes build/slurm/24.11 with
debootstrap if it is not there yet (two to three minutes, 400 MB), and runs the command inside, in this repository and
with this Python. Without a command it only makes the folder. It needs root's rights and debootstrap; this host stays as
it is: what is mounted in the folder is seen by the command alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

RELEASES = {"22.05": "bookworm", "24.11": "trixie", "26.05": "unstable"}
"""The release of Debian that has each version of Slurm."""
PACKAGES = "slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins"
LIBRARIES = "python3"
"""Brings the libraries of Python's own modules, such as sqlite3, in this release's builds."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REPOSITORY = Path(__file__).resolve().parents[1]


class NotHereError(Exception):
    """What is needed is not on this host."""


def made(folder: Path, version: str) -> Path:
    """Return the root directory of a system with this version of Slurm below `folder`; make it if it is not there."""
    if version not in RELEASES:
        raise NotHereError(f"VERSION={version}: known are {', '.join(RELEASES)}")
    if os.geteuid():
        raise NotHereError("debootstrap, mount and chroot need root's rights")
    root = folder.resolve() / version
    if not (root / "etc/hosts").exists():
        shutil.rmtree(root, ignore_errors=True)
        _debootstrap(root, RELEASES[version])
        found = _output("chroot", str(root), "slurmctld", "-V").split()[-1]
        if not found.startswith(f"{version}."):
            raise NotHereError(f"Debian's {RELEASES[version]} has Slurm {found} by now, not {version}")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n", "utf-8")
    return root


def _debootstrap(root: Path, release: str) -> None:
    if shutil.which("debootstrap") is None:
        raise NotHereError("there is no debootstrap here (Debian: apt-get install debootstrap)")
    root.parent.mkdir(parents=True, exist_ok=True)
    include = f"--include={PACKAGES},{LIBRARIES}"
    _output("debootstrap", "--variant=minbase", include, release, str(root))


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise NotHereError(f"{shlex.join(words)[:200]}: {(done.stderr or done.stdout)[-1000:]}")
    return done.stdout


def entered(root: Path, command: Sequence[str]) -> int:
    """Run a command inside `root` from this repository's directory, and return its exit code."""
    mounts = [f"mount --rbind {at} {_point(root, at)}" for at in ("/proc", "/dev", "/sys")]
    mounts += [f"mount --bind {shlex.quote(str(at))} {_point(root, at)}" for at in _shared()]
    inside = f"cd {shlex.quote(str(REPOSITORY))} && exec {shlex.join(command)}"
    script = " && ".join([*mounts, f"exec chroot {shlex.quote(str(root))} sh -c {shlex.quote(inside)}"])
    scripts = REPOSITORY / ".venv/bin"
    environment = {**os.environ, "PATH": f"{scripts}:{PATH}", "HOME": "/root"}
    environment.pop("TMPDIR", None)
    words = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script)
    return subprocess.run(words, env=environment, check=False).returncode


def _shared() -> Iterator[Path]:
    """Yield what the command has of this host: the repository, and this Python with its links."""
    yield REPOSITORY
    if sys.base_prefix != "/usr":
        yield Path(sys.base_prefix)
        return
    yield Path(sysconfig.get_path("stdlib"))
    link = Path(sys.executable)
    while link.is_symlink():
        link = link.parent / link.readlink()
        if REPOSITORY not in link.parents:
            yield link


def _point(root: Path, at: str | Path) -> str:
    """Return the place of `at` inside `root`, quoted, where something can be mounted."""
    place = root / str(at).lstrip("/")
    if Path(at).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return shlex.quote(str(place))


def main(folder: str, version: str, *command: str) -> int:
    """Make the root directory, and run the command in it."""
    try:
        root = made(Path(folder), version)
    except NotHereError as error:
        print(error, file=sys.stderr)
        return 3
    return entered(root, command) if command else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
