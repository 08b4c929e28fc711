from __future__ import annotations

from collections import Counter

import pytest

import topoplace as tp
from topoplace_hosts.networks import switch_tree
from topoplace_hosts.networks.switch_tree import Cables, Switch


def switches(text: str) -> list[Switch]:
    """`a: b c n1` per line: the switch, and below it machines (whose names begin with n) and switches."""
    found = []
    for number, line in enumerate(text.strip().split("\n"), 1):
        name, _, below = line.strip().partition(":")
        names = below.split()
        machines = [one for one in names if one.startswith("n")]
        found.append(Switch(name, f"line {number}", machines, [one for one in names if one not in machines]))
    return found


def told(tree: switch_tree.SwitchTree) -> dict[str, str]:
    return {level.name: " ".join(domain or "-" for domain in level.domains) for level in tree.levels}


def test_leaves_at_unequal_depth() -> None:
    tree = switch_tree.from_tree(switches("r: a b\na: n0\nb: c n3\nc: n1 n2"))
    assert tree.machines == ("n0", "n3", "n1", "n2")
    assert told(tree) == {"leaf": "a - c c", "spine": "- b b b", "core": "r r r r"}
    assert tree.notes == []


def test_parents_with_the_same_children_are_one_domain_at_every_level() -> None:
    tree = switch_tree.from_tree(switches("c2: s1 s2\nc1: s2 s1\ns1: l1 l2\ns2: l2 l1\nl1: n1\nl2: n2"))
    assert told(tree) == {"leaf": "l1 l2", "spine": "s1 s1", "core": "c2 c2"}
    assert tree.notes == [
        "One domain, because they have the same children: switch s1 and s2.",
        "One domain, because they have the same children: switch c2 and c1.",
    ]


def test_many_twins_are_few_notes() -> None:
    pods = [f"a{i}: l{i}\nb{i}: l{i}\nl{i}: n{i}" for i in range(8)]
    tree = switch_tree.from_tree(
        switches("\n".join([*pods, f"top: {' '.join(f'a{i} b{i}' for i in range(8))}"]))
    )
    assert told(tree)["core"] == " ".join(["top"] * 8)
    assert tree.notes[4:] == [
        "One domain, because they have the same children: switch a4 and b4.",
        "3 more sets of switch names are one domain each, as these are.",
    ]


def test_a_forest_says_so_and_switches_without_machines_do_not_count() -> None:
    tree = switch_tree.from_tree(switches("a: n1\nb: n2\nc:"))
    assert told(tree) == {"leaf": "a b"}
    assert len(tree.notes) == 1
    assert "2 trees of the text: a, b have no switch above them" in tree.notes[0]


def test_ranks_as_told() -> None:
    found = switches("s: a b\na: n1\nb: n2")
    for switch, rank in zip(found, (7, 1, 2), strict=True):
        switch.rank = rank
    assert told(switch_tree.from_tree(found, names={1: "one"})) == {
        "one": "a -",
        "core": "- b",
        "level8": "s s",
    }
    found[0].rank = 1
    with pytest.raises(tp.TopologyError, match="line 1: switch 's' is not on a higher level"):
        switch_tree.from_tree(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: n1\na: n2", "line 2: switch 'a' appears twice, first in line 1"),
        (
            "a: b c n1",
            "line 1: switch 'a' has the child 'b', which the text does not describe (2 names like this",
        ),
        ("a: n1\nb: n1", "line 2: no tree: machine 'n1' is below switch 'b' and, in line 1, below 'a'"),
        (
            "p: a b\nq: b c\na: n1\nb: n2\nc: n3",
            "line 2: no tree: switch 'b' is below 'q' and, in line 1, below 'p', whose children are not the same",
        ),
        ("a: b\nb: c n1\nc: b", "line 2: switch 'b' is below itself"),
        ("a: a n1", "line 1: switch 'a' is below itself"),
        ("a:", "no machine is below any switch"),
        (
            "\n".join(f"s{i}: s{i + 1}" for i in range(70)) + "\ns70: n1",
            "71 levels of one switch above another",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError) as error:
        switch_tree.from_tree(switches(text))
    assert message in str(error.value)


def test_dangling_children_can_be_left_out() -> None:
    tree = switch_tree.from_tree(switches("a: b c\nb: n1"), allow_dangling=True)
    assert told(tree) == {"leaf": "b", "spine": "a"}
    assert tree.notes == ["Left out, because the text refers to them and does not describe them: c."]


def cables(text: str) -> Cables:
    """`n1 a`: a machine in a switch; `a b`: a switch in a switch. Any number of times."""
    found = Cables()
    for near, far in (line.split() for line in text.strip().split("\n")):
        for one, other in ((near, far), (far, near)):
            table = found.ports if one.startswith("n") else found.trunks
            table.setdefault(one, Counter())[other] += 1
        if near.startswith("n"):
            del found.trunks[far][near]
    return found


def test_cables_of_rails_and_spines() -> None:
    found = cables("n1 a\nn1 b\nn2 a\nn2 b\nn3 c\nn3 d\na s\nb s\nb t\nc s\nd t\na t\nc t\nd s")
    found.trunks["lonely"] = Counter()
    found.ports["n4"] = Counter()
    found.strangers["c"] = 6
    tree = switch_tree.from_cables(found, what="it")
    assert told(tree) == {"leaf": "a a c", "spine": "s s s"}
    assert [level.oversubscription for level in tree.levels] == [1.0, 12 / 8]
    notes = " ".join(tree.notes)
    assert "No machine reaches switch lonely" in notes
    assert "Plugged into no switch: machine n4" in notes
    assert "with_level('leaf', rail=True)" in notes


def test_cables_between_switches_of_one_level() -> None:
    tree = switch_tree.from_cables(cables("n1 a\nn2 b\na b"), what="it")
    assert told(tree) == {"leaf": "a b", "spine": "a a"}


@pytest.mark.parametrize("text", ["n1 n2", "a b"])
def test_no_fabric(text: str) -> None:
    found = Cables({"n1": Counter()}, {}) if text == "n1 n2" else cables(text)
    with pytest.raises(tp.TopologyError, match=r"no fabric: it has no (switch|machine)"):
        switch_tree.from_cables(found, what="it")
