from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.discovery.text import host_list

NAMES = st.text(st.sampled_from("ab-019"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[01-03,11],x3", "node01 node02 node03 node11 x3"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("n[098-101]", "n098 n099 n100 n101"),
        ("r[0-1]n[1-2]-ib", "r0n1-ib r0n2-ib r1n1-ib r1n2-ib"),
        ("a,a", "a a"),
        ("[7-8]", "7 8"),
        ("n[3]", "n3"),
    ],
)
def test_expanded(text: str, names: str) -> None:
    assert host_list.expanded(text) == names.split()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("node01 node02 node03 node11 x3", "node[01-03,11],x3"),
        ("n8 n9 n10", "n[8-10]"),
        ("n09 n10 n9 n10", "n[09-10,9-10]"),
        ("n1-ib n2-ib n3", "n[1-2]-ib,n3"),
        ("a a", "a,a"),
        ("", ""),
    ],
)
def test_folded(names: str, text: str) -> None:
    assert host_list.folded(names.split()) == text


@given(st.lists(NAMES, min_size=1))
def test_expanded_undoes_folded(names: list[str]) -> None:
    assert host_list.expanded(host_list.folded(names)) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a non-empty string"),
        (",a", "must begin with a name"),
        ("a,", "must begin with a name"),
        ("a[1-2", "has no partner"),
        ("a]b", "has no partner"),
        ("a[1-2],b c", "blank in 'b c'"),
        ("a[]", "'' in 'a[]' is not a range"),
        ("a[x]", "'x' in 'a[x]' is not a range"),
        ("a[١]", "is not a range"),
        ("a[3-1]", "'3-1' in 'a[3-1]' runs backwards"),
        ("a[0-1000000]", "more than 1000000 names"),
        ("a[0-999][0-999],b", "with 'b' there are more than 1000000 names"),
        ("[0-999999]" * 1000, "more than 1000000 names"),
        ("a" * 256, "names of more than 255 characters"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError) as error:
        host_list.expanded(text, "Nodes")
    assert message in str(error.value)
    assert str(error.value).startswith("Nodes")


def test_limit_counts_what_is_made() -> None:
    assert len(host_list.expanded("n[1-10]", limit=10)) == 10
    with pytest.raises(tp.TopologyError, match="more than 9 names"):
        host_list.expanded("n[1-10]", limit=9)


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1", "n" * 256])
def test_a_name_that_no_list_can_hold(name: str) -> None:
    with pytest.raises(tp.TopologyError):
        host_list.folded(["a", name])


@given(st.text(st.sampled_from("ab09[],-# \n"), max_size=30))
def test_junk(text: str) -> None:
    try:
        names = host_list.expanded(text, limit=1000)
    except tp.TopologyError:
        return
    assert host_list.expanded(host_list.folded(names)) == names
