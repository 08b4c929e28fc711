"""Policies of others by `package.module:Class`."""

from __future__ import annotations

from pathlib import Path

import pytest

from topoplace import policies

MODULE = """
from topoplace.policies import Baseline

class Mine(Baseline):
    name = "mine"

class NoPolicy:
    pass

number = 3
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_class_of_test.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_class_of_your_own_is_made_with_its_arguments() -> None:
    assert policies.get("own_class_of_test:Mine").name == "mine"
    limited = policies.get("own_class_of_test:Mine", max_nodes=7)
    assert isinstance(limited, policies.Baseline)
    assert limited.max_nodes == 7


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("own_class_of_test:Nobody", "has no attribute 'Nobody'"),
        ("nowhere_of_test:Mine", "No module named 'nowhere_of_test'"),
        ("own_class_of_test:number", "number is not a class"),
        ("own_class_of_test:NoPolicy", "not a policy, as it lacks "),
        (":Mine", "Empty module name"),
        ("own_class_of_test:", "has no attribute ''"),
        (".own_class_of_test:Mine", "is not the name of a module, such as package.module"),
        ("./own_class_of_test:Mine", "is not the name of a module, such as package.module"),
    ],
)
def test_what_is_no_policy_is_refused_by_name(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"^name = '{name}'.*{why}"):
        policies.get(name)


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(
        ValueError, match="name = 'own_class_of_test:Mine': got an unexpected keyword argument 'x'"
    ):
        policies.get("own_class_of_test:Mine", x=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\nraise RuntimeError('boom')", r"RuntimeError: boom \(raising_of_test.py, line 2\)"),
        ("x = (", r"SyntaxError: .* \(raising_of_test.py, line 1\)"),
        ("raise SystemExit(3)", r"SystemExit: 3 \(raising_of_test.py, line 1\)"),
    ],
)
def test_what_a_module_raises_is_told_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "raising_of_test.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"^name = 'raising_of_test:Mine': importing it raised {why}$"):
        policies.get("raising_of_test:Mine")
