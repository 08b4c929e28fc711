"""One run of `topoplace demo`, from which several tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from command_line import run
from topoplace.experiments.papers import mapa
from topoplace.experiments.papers.claims import PaperClaim


class Demonstration(NamedTuple):
    """What `topoplace demo` printed, the folder it ran in, and the rows of MAPA's quick run that it is made from."""

    printed: str
    folder: Path
    claims: list[PaperClaim]


def demonstrate(folder: Path) -> Demonstration:
    """Run `topoplace demo` in `folder`."""
    made: list[list[PaperClaim]] = []
    reproduce = mapa.reproduce

    def kept(**options: Any) -> list[PaperClaim]:
        made.append(reproduce(**options))
        return made[-1]

    with mock.patch.object(mapa, "reproduce", kept):
        done = run("demo", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    (claims,) = made
    return Demonstration(done.stdout, folder, claims)
