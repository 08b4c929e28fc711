from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from growth import assert_linear
from topoplace.discovery.text import yaml_tree


def test_scalars_stay_text_and_lines_are_known() -> None:
    (root,) = yaml_tree.documents("a: 0x10\nb: no\nc: ~\nd:\n  - 1.50\n  - '~'\n", "it")
    assert root == {"a": "0x10", "b": "no", "c": None, "d": ["1.50", "~"]}
    assert yaml_tree.at(root) == "line 1: "
    assert yaml_tree.at(root["d"]) == "line 5: "
    assert yaml_tree.at("text") == ""


def test_json_reads_as_yaml_does() -> None:
    (root,) = yaml_tree.documents('\n{"a": [1, 2.50, true, null, {"b": "x"}]}', "it")
    assert root == {"a": ["1", "2.50", "true", None, {"b": "x"}]}
    assert isinstance(root["a"], yaml_tree.Items)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "line 2: key 'a' appears twice"),
        ("a: &x 1\nb: *x", "line 2: alias *x is not read"),
        ("a: 1\n b: 2", "line 2: it is not well-formed"),
        ("a: [1", "line 2: it is not well-formed"),
        ("? [a]\n: 1", "line 1: a key that is itself"),
        ("a: \x01", "not well-formed"),
        ("- " * 100 + "1", "line 1: it is nested deeper than 64"),
        ('{"a": 1, "a": 2}', "key 'a' appears twice"),
        ('{"a": 1\n"b": 2}', "line 2: it is not well-formed"),
        ("[" * 100 + "]" * 100, "nested deeper than 64"),
        ("[" * 1_000_000, "nested deeper than 64"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError) as error:
        list(yaml_tree.documents(text, "it"))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "piece", ["- ", "a: ", "? ", "!a ", "&a ", "{", "- a\n", "a:\n", "\t", "'", "#\n", "---\n"]
)
def test_a_megabyte_of_junk_is_refused_in_linear_time(piece: str) -> None:
    def refuse(size: int) -> None:
        with pytest.raises(tp.TopologyError):
            deque(yaml_tree.documents("x: " + piece * (size // len(piece)) + "}", "it"), 0)

    assert_linear(refuse, 1_000_000)


def test_objects() -> None:
    text = "kind: List\nitems: [{a: 1}, {a: 2}]\n---\n---\na: 3\n"
    assert list(yaml_tree.objects(text, "it")) == [{"a": "1"}, {"a": "2"}, {"a": "3"}]
    assert list(yaml_tree.objects('[{"a": 1}]', "it")) == [{"a": "1"}]
    with pytest.raises(tp.TopologyError, match="'x' is not an object"):
        list(yaml_tree.objects("x", "it"))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda root: yaml_tree.fields(root["list"], "it"), "line 2: it = ['x'] is not a mapping"),
        (lambda root: yaml_tree.items(root, "text"), "line 1: text = 'y' is not a list"),
        (lambda root: yaml_tree.scalar(root, "list"), "line 1: list = ['x'] is not a plain value"),
        (lambda root: yaml_tree.number(root, "text", 0, 9), "line 1: text = 'y' is not a number in 0..9"),
        (lambda root: yaml_tree.number(root, "ten", 0, 9), "line 1: ten = '10' is not a number in 0..9"),
    ],
)
def test_values_of_the_wrong_kind(read: object, message: str) -> None:
    (root,) = yaml_tree.documents("list:\n  - x\ntext: y\nten: 10\n", "it")
    with pytest.raises(tp.TopologyError) as error:
        read(root)  # type: ignore[operator]
    assert str(error.value) == message


def test_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert list(yaml_tree.documents("{}", "it")) == [{}]
    with pytest.raises(ModuleNotFoundError, match=r"topoplace\[discovery\]"):
        list(yaml_tree.documents("a: 1", "it"))


@given(st.text(st.sampled_from("ab:-[]{}'\"\n #&*!|>?%@~"), max_size=40))
def test_any_text(text: str) -> None:
    with suppress(tp.TopologyError):
        list(yaml_tree.documents(text, "it"))
