"""Policies of other installed packages: found by name, after built-in ones, and named when they cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from offered_policies import Install, installer

POLICY = '''
from topoplace.policies import Baseline

class Lowest(Baseline):
    """Takes the lowest ids. And more."""

    name = "lowest"

class Other:
    """No policy."""

class Failing(Lowest):
    """Cannot be made."""

    def __init__(self):
        raise RuntimeError("no licence")

def made():
    return Lowest()

NOTHING = 3
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.delitem(sys.modules, "broken_policies", raising=False)
    return installer(POLICY, tmp_path, monkeypatch)


def test_policies_of_other_packages_have_names(install: Install, call: Call) -> None:
    assert tp.policies.installed.names() == ()
    install("their_policies", "lowest = their_policies:Lowest", "baseline = their_policies:Lowest")
    assert tp.policies.installed.names() == ("baseline", "lowest")
    assert "lowest" not in tp.policies.names()
    assert type(tp.policies.get("lowest")).__module__ == "their_policies"
    assert type(tp.policies.get("baseline")) is tp.policies.Baseline
    with pytest.raises(ValueError, match=r"'lowes': no such policy; did you mean lowest\?$"):
        tp.policies.get("lowes")
    assert "CUDA_VISIBLE_DEVICES=0,1" in call("place", "summit", "--gpus", 2, "--policy", "lowest").out
    row = next(line for line in call("policies").out.splitlines() if line.startswith("lowest "))
    assert "their_policies  Takes the lowest ids" in row


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (
            "their_policies:Missing",
            "its package offers their_policies:Missing: module 'their_policies' has no",
        ),
        (
            "no_such_module:Lowest",
            "its package offers no_such_module:Lowest: No module named 'no_such_module'",
        ),
        ("their_policies:NOTHING", "its package offers their_policies:NOTHING, which is not a class"),
        ("their_policies:Other", "not a policy, as it lacks name, "),
        (
            "their_policies:Failing",
            r"making it raised RuntimeError: no licence \(their_policies.py, line 16\)$",
        ),
        ("3!", "its package offers 3!, which is not MODULE:CLASS"),
    ],
)
def test_what_cannot_be_used_is_named(install: Install, call: Call, value: str, why: str) -> None:
    install("their_policies", f"lowest = {value}")
    with pytest.raises(ValueError, match=f"^name = 'lowest': {why}"):
        tp.policies.get("lowest")
    done = call("policies")
    assert done.code == 0
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    assert "cannot be used: name = 'lowest': " in rows["lowest"]
    assert value.partition(":")[0] in rows["lowest"]  # the package
    assert "fcfs" in rows
    done = call("place", "summit", "--policy", "lowest")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("topoplace: --policy = 'lowest': ")


def test_a_function_may_make_the_policy(install: Install, call: Call) -> None:
    install("their_policies", "lowest = their_policies:made")
    assert "their_policies  Takes the lowest ids" in call("policies").out


def test_a_name_that_a_built_in_policy_has_is_said_to_be_taken(install: Install, call: Call) -> None:
    install("their_policies", "baseline = their_policies:Lowest")
    rows = [line for line in call("policies").out.splitlines() if line.startswith("baseline ")]
    assert len(rows) == 2
    assert "their_policies  cannot be used by this name, which a built-in policy has" in rows[1]


def test_one_name_of_two_packages_is_refused(install: Install, call: Call) -> None:
    install("their_policies", "lowest = their_policies:Lowest")
    install("more_policies", "lowest = more_policies:Lowest")
    with pytest.raises(ValueError, match="several packages: more_policies:Lowest, their_policies:Lowest"):
        tp.policies.get("lowest")
    done = call("place", "summit", "--policy", "lowest")
    assert (done.code, done.err[:40]) == (2, "topoplace: --policy = 'lowest': offered ")


RAISED = (
    "raise RuntimeError('boom')",
    "raise SystemExit(5)",
    "raise GeneratorExit",
    "import asyncio\nraise asyncio.CancelledError",
    "class Odd(BaseException):\n    def __str__(self):\n        raise ValueError\nraise Odd",
)


@pytest.mark.parametrize("text", [*RAISED, "x = ("])
def test_a_package_that_raises_hides_no_other(
    install: Install, call: Call, tmp_path: Path, text: str
) -> None:
    install("their_policies", "broken = broken_policies:Lowest", "lowest = their_policies:Lowest")
    (tmp_path / "broken_policies.py").write_text(text)
    done = call("policies")
    assert done.code == 0
    rows = {line.partition(" ")[0]: line for line in done.out.splitlines()}
    assert "cannot be used: name = 'broken': its package offers" in rows["broken"]
    assert "their_policies" in rows["lowest"]


@pytest.mark.parametrize("text", RAISED)
@pytest.mark.parametrize("where", ["def __init__(self):", "@property\n    def name(self):"])
def test_a_policy_that_raises_when_it_is_made_is_set_aside(
    install: Install, call: Call, tmp_path: Path, text: str, where: str
) -> None:
    install("their_policies", "broken = broken_policies:Broken")
    body = "\n        ".join(text.splitlines())
    (tmp_path / "broken_policies.py").write_text(f"class Broken:\n    {where}\n        {body}\n")
    with pytest.raises(ValueError, match=r"^name = 'broken': making it raised "):
        tp.policies.get("broken")
    done = call("policies")
    assert (done.code, done.err) == (0, "")
    assert "cannot be used: name = 'broken': making it raised " in done.out
    done = call("simulate", "summit", "--policy", "broken")
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("where", ["", "class Broken:\n    def __init__(self):\n        "])
def test_an_interrupt_while_a_policy_is_imported_or_made_stays_one(
    install: Install, call: Call, tmp_path: Path, where: str
) -> None:
    install("their_policies", "broken = broken_policies:Broken")
    (tmp_path / "broken_policies.py").write_text(f"{where}raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        tp.policies.get("broken")
    done = call("policies")
    assert (done.code, done.out, done.err) == (130, "", "")
