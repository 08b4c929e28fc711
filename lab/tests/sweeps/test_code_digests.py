"""Digests of code: those of a policy depend on its own code, wherever that is, and on nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from offered_policies import installer
from topoplace import policies
from topoplace_lab.sweeps import code_digests, code_of
from topoplace_lab.sweeps.code_digests import library_digest

POLICY = """
import json
import numpy
from {helper} import LIMIT
from topoplace.policies import Greedy

class Mine(Greedy):
    name = "mine"
"""
FILES = {
    "alone.py": POLICY.format(helper="sibling"),
    "sibling.py": "from deeper import LIMIT\n",
    "deeper.py": "def later():\n    import latest\n\nLIMIT = 1\n",
    "latest.py": "this is no Python\n",
    "unrelated.py": "LIMIT = 1\n",
    "whole/__init__.py": "",
    "whole/policy.py": POLICY.format(helper="whole.rules"),
    "whole/rules.py": "LIMIT = 1\n",
    "whole/lazy.py": "LIMIT = 1\n",
    "whole/notes.txt": "no code\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "whole").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.partition(".")[0].replace("/", "."), raising=False)
    monkeypatch.delitem(sys.modules, "whole", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("policy", "file", "counts"),
    [
        *(("alone:Mine", name, True) for name in ("alone.py", "sibling.py", "deeper.py", "latest.py")),
        *(("alone:Mine", name, False) for name in ("unrelated.py", "whole/rules.py")),
        *(
            ("whole.policy:Mine", f"whole/{name}.py", True)
            for name in ("__init__", "policy", "rules", "lazy")
        ),
        *(("whole.policy:Mine", name, False) for name in ("whole/notes.txt", "alone.py")),
    ],
)
def test_the_code_of_a_policy_is_its_package_or_its_module_and_those_beside_it(
    folder: Path, policy: str, file: str, counts: bool
) -> None:
    before = code_of(policy)
    with (folder / file).open("a") as changed:
        changed.write("# other\n")
    assert len(before) == 12
    assert (code_of(policy) != before) == counts


def test_the_place_of_the_code_does_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_of("whole.policy:Mine")
    (folder / "moved").mkdir()
    (folder / "whole").rename(folder / "moved/whole")
    for name in [name for name in sys.modules if name.partition(".")[0] == "whole"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder / "moved")
    assert code_of("whole.policy:Mine") == before


def test_policies_of_this_library_have_no_code_of_their_own() -> None:
    assert {code_of(name) for name in policies.names()} == {""}
    with pytest.raises(ValueError, match="name = 'fcf': no such policy"):
        code_of("fcf")


def test_a_function_that_makes_a_policy_of_this_library_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "from topoplace.policies import Baseline\n\ndef made():\n    return Baseline()\n"
    installer(module, tmp_path, monkeypatch)("made_policies", "made = made_policies:made")
    before = code_of("made")
    (tmp_path / "made_policies.py").write_text(module.replace("Baseline()", "Baseline( )"), encoding="utf-8")
    assert len(before) == 12
    assert code_of("made") != before


def test_the_digest_of_the_library_is_of_its_code_and_its_extension() -> None:
    assert len(library_digest()) == 12
    modules = (sys.modules[name] for name in code_digests._OURS)
    names = {name for one in modules for name in code_digests._files_of(one).values()}
    assert {"topoplace/__init__.py", "topoplace_lab/simulate/event_loop.py"} <= names
