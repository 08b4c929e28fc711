"""Make etcd, kube-apiserver and kube-scheduler of Debian 12's packages and sources, in a folder of their own.

`python tools/kubernetes_binaries.py build/kubernetes` leaves the programs in build/kubernetes/bin. It needs apt, the
package dpkg-dev and about 2 GB of disk for a while; nothing is installed, and no rights are needed. apt checks the
signatures of what it downloads.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

RELEASE = "bookworm"
SOURCE = "kubernetes_1.20.5+really1.20.2.orig.tar.gz"
"""Debian's newest sources that have the servers: later ones have kubectl only."""
SHA256 = "b83c0780efb182d928dc63d46488a847f161f04e40a94b96bf5247dd671ecdfc"
GO = "golang-1.19"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
BUILT = ("kube-apiserver", "kube-scheduler")
NAMES = ("etcd", *BUILT)
INSTEAD = "instead, set TOPOPLACE_KUBERNETES_BINARIES to a folder that has " + ", ".join(NAMES)
PACKAGE = "k8s.io/kubernetes"
OPENAPI = f"{PACKAGE}/pkg/generated/openapi"
MARK = "+k8s:openapi-gen="
EXAMPLES = ("vendor/k8s.io/code-generator", "vendor/k8s.io/sample-apiserver")


class NotHereError(Exception):
    """What is needed is not on this host."""


def run(*words: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program and return what it prints; NotHereError with the end of its errors if it fails."""
    try:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotHereError(f"there is no {words[0]} here; {INSTEAD}") from None
    if done.returncode:
        raise NotHereError(f"{' '.join(words)[:200]}: {done.stderr[-1000:]}\n{INSTEAD}")
    return done.stdout


class Apt:
    """apt with the sources of Debian 12 in its own lists, from where this host has its packages."""

    def __init__(self, work: Path) -> None:
        self._work = work
        sites = run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", folder=work)
        uris = {line.split()[1] for line in sites.splitlines() if line.startswith(f"{RELEASE} ")}
        if not uris:
            raise NotHereError(f"apt here has no packages of {RELEASE} (Debian 12); {INSTEAD}")
        lines = [
            f"{kind} [signed-by={KEYS}] {uri} {RELEASE} main"
            for uri in sorted(uris)
            for kind in ("deb", "deb-src")
        ]
        (work / "sources.list").write_text("\n".join(lines) + "\n", "utf-8")
        places = {"Etc::SourceList": "sources.list", "Etc::SourceParts": "parts", "State::Lists": "lists"}
        places |= {"Cache": "cache", "Etc::Preferences": "none", "Etc::PreferencesParts": "parts"}
        for name in ("parts", "lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True, exist_ok=True)
        settings = [f'Dir::{key} "{work / name}";' for key, name in places.items()]
        settings.append('APT::Sandbox::User "root";')
        (work / "apt.conf").write_text("\n".join(settings) + "\n", "utf-8")
        self("update")

    def __call__(self, *words: str) -> None:
        """Run apt-get."""
        environment = {**os.environ, "APT_CONFIG": str(self._work / "apt.conf")}
        run("apt-get", "--quiet", *words, folder=self._work, environment=environment)

    def unpacked(self, *packages: str) -> Path:
        """Return a folder with the files of packages."""
        self("download", *packages)
        root = self._work / "root"
        for archive in self._work.glob("*.deb"):
            run("dpkg-deb", "--extract", str(archive), str(root), folder=self._work)
        return root


def sources(work: Path, apt: Apt) -> Path:
    """Return the folder of Kubernetes' sources; NotHereError if they are not those that are pinned."""
    apt("source", "--download-only", "kubernetes")
    digest = hashlib.sha256((work / SOURCE).read_bytes()).hexdigest() if (work / SOURCE).exists() else "none"
    if digest != SHA256:
        raise NotHereError(f"{SOURCE} has SHA-256 {digest}, not {SHA256}; {INSTEAD}")
    (description,) = work.glob("kubernetes_*.dsc")
    place = work / "go/src/k8s.io/kubernetes"
    place.parent.mkdir(parents=True, exist_ok=True)
    run("dpkg-source", "--no-check", "--extract", str(description), str(place), folder=work)
    return place


def described(place: Path) -> Sequence[str]:
    """Return the packages whose objects the API server describes by OpenAPI."""
    vendored = [path for path in (place / "vendor/k8s.io").iterdir() if path.is_symlink()]
    found: set[str] = set()
    for top in (place / "pkg", place / "cmd", place / "plugin", *vendored):
        for folder, _, names in os.walk(f"{top}/"):
            path = Path(folder).relative_to(place).as_posix()
            if path.startswith(EXAMPLES) or "testdata" in path:
                continue
            sources = [Path(folder, name) for name in names if name.endswith(".go")]
            if any(MARK in source.read_text("utf-8", "replace") for source in sources):
                found.add(f"{PACKAGE}/{path}")
    return sorted(found)


def build(work: Path, place: Path, go_root: Path, target: Path) -> None:
    """Build the programs; the description of the API, which the sources lack, is generated before."""
    environment = {
        **os.environ,
        "GOROOT": str(go_root),
        "GOPATH": str(work / "go"),
        "GOCACHE": str(work / "cache/go"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
    }
    version = SOURCE.partition("really")[2].partition(".orig")[0]
    stamps = [f"-X {PACKAGE}/vendor/k8s.io/component-base/version.gitVersion=v{version}", "-s", "-w"]
    go = str(go_root / "bin/go")
    generator = str(work / "openapi-gen")
    package = f"{PACKAGE}/vendor/k8s.io/kube-openapi/cmd/openapi-gen"
    run(go, "build", "-o", generator, package, folder=place, environment=environment)
    header = str(place / "vendor/k8s.io/code-generator/hack/boilerplate.go.txt")
    run(
        *(generator, "-i", ",".join(described(place)), "-p", OPENAPI, "-O", "zz_generated.openapi"),
        *("-h", header, "-r", str(work / "violations")),
        folder=place,
        environment=environment,
    )
    for name in BUILT:
        print(f"building {name}, which takes minutes", file=sys.stderr, flush=True)
        whole = f"{PACKAGE}/cmd/{name}"
        run(
            *(go, "build", "-ldflags", " ".join(stamps), "-o", str(target / name), whole),
            folder=place,
            environment=environment,
        )


def main(folder: Path) -> int:
    """Make the programs that are missing; return 1, and say why, if that is not possible here."""
    target = folder.absolute() / "bin"
    if all((target / name).exists() for name in NAMES):
        return 0
    work = folder.absolute() / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    target.mkdir(exist_ok=True)
    try:
        apt = Apt(work)
        place = sources(work, apt)
        root = apt.unpacked("etcd-server", f"{GO}-go", f"{GO}-src")
        build(work, place, root / "usr/lib" / GO.replace("golang", "go"), target)
        shutil.copy2(root / "usr/bin/etcd", target / "etcd")
    except NotHereError as error:
        print(f"tools/kubernetes_binaries.py: {error}", file=sys.stderr)
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
