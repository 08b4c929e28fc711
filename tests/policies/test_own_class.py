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
        ("own_class_of_test:NoPolicy", "is not a Policy"),
        (":Mine", "Empty module name"),
        ("own_class_of_test:", "has no attribute ''"),
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
