"""Policies of other packages: by their entry points, and with their faults named."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from distributions import whole
from offered_policies import Install, installer
from topoplace.policies import installed

MODULE = """
import topoplace as tp
from topoplace.policies import Baseline

class Lowest(Baseline):
    def best_within(self, job, *rest):
        return self.fail(job)

    def fail(self, job):
        raise self.error(job)

    def error(self, job):
        return KeyError("x")

class WrongAnswer(Lowest):
    def error(self, job):
        return ValueError("policy 'baseline': best returned 3")

class Failing(Baseline):
    def __init__(self):
        raise RuntimeError("no licence")

class Refusing(Baseline):
    def __init__(self):
        raise ValueError("seed = -1")

NOTHING = 3
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    return installer(MODULE, tmp_path, monkeypatch)


def test_names_lead_to_classes_and_packages(install: Install) -> None:
    assert installed.names() == ()
    assert installed.find("lowest") is None
    assert installed.packages("lowest") == ()
    install("theirs_of_test", "lowest = theirs_of_test:Lowest", "also = theirs_of_test:Lowest")
    for package in ("d_of_test", "a_of_test", "c_of_test", "b_of_test"):
        install(package, f"lowest = {package}.sub:Lowest", "same = theirs_of_test:Lowest", f"{package} = x:Y")
    packages = ("a_of_test", "b_of_test", "c_of_test", "d_of_test")
    assert installed.names() == (*packages[:1], "also", *packages[1:], "lowest", "same")
    assert installed.packages("lowest") == (*packages, "theirs_of_test")
    assert installed.packages("same") == ("theirs_of_test",)
    found = installed.find("also")
    assert found is not None
    assert found.__module__ == "theirs_of_test"
    assert type(tp.policies.get("also", max_nodes=3)).__name__ == "Lowest"
    values = ", ".join((*(f"{package}.sub:Lowest" for package in packages), "theirs_of_test:Lowest"))
    with pytest.raises(ValueError, match=f"^name = 'lowest': offered by several packages: {values};"):
        installed.find("lowest")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("theirs_of_test:Missing", "its package offers theirs_of_test:Missing: module .* has no attribute"),
        ("theirs_of_test:NOTHING", "its package offers theirs_of_test:NOTHING, which is not a class"),
        ("theirs_of_test", "its package offers theirs_of_test, which is not MODULE:CLASS"),
        (
            "theirs_of_test:Failing",
            r"making it raised RuntimeError: no licence \(theirs_of_test.py, line 21\)$",
        ),
    ],
)
def test_what_cannot_be_used_is_named(install: Install, value: str, why: str) -> None:
    install("theirs_of_test", f"theirs = {value}")
    with pytest.raises(ValueError, match=f"^name = 'theirs': {why}"):
        tp.policies.get("theirs")


def test_a_wrong_value_is_reported_as_the_policy_says_it(install: Install) -> None:
    install("theirs_of_test", "theirs = theirs_of_test:Refusing")
    with pytest.raises(ValueError, match=r"^seed = -1$"):
        tp.policies.get("theirs")
    with pytest.raises(ValueError, match=r"^baseline: got an unexpected keyword argument 'x'$"):
        tp.policies.get("baseline", x=1)
    with pytest.raises(ValueError, match=r"^name = 'theirs': .*unexpected keyword argument 'x'$"):
        tp.policies.get("theirs", x=1)


def fault(policy: tp.Policy, raised: Exception | None = None) -> str:
    """What is reported of a policy that places a pair, or of another error next to it."""

    def use() -> None:
        with installed.faults_named(policy, "here: "):
            if raised:
                raise raised
            policy.place(tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("minsky")))

    with pytest.raises(ValueError, match=r".") as told:
        use()
    return str(told.value)


def test_faults_of_others_are_named_and_nothing_else(install: Install) -> None:
    install("theirs_of_test", "lowest = theirs_of_test:Lowest", "wrong = theirs_of_test:WrongAnswer")
    lowest, wrong = tp.policies.get("lowest"), tp.policies.get("wrong")
    assert fault(lowest) == "here: best_within raised KeyError: 'x' (theirs_of_test.py, line 10)"
    assert fault(wrong) == "here: best returned 3"
    assert fault(lowest, tp.AllocationError("GPU 0 is busy")) == "here: GPU 0 is busy"
    assert fault(lowest, ValueError("seed = -1")) == "seed = -1"
    answered = fault(lowest, TypeError("no tuple"))
    assert answered.startswith(
        "here: calling it or using its answer raised TypeError: no tuple (test_installed.py, line "
    )
    for error in (OSError("disk"), ImportError("module")):
        with pytest.raises(type(error)), installed.faults_named(lowest):
            raise error
    with pytest.raises(KeyError), installed.faults_named(tp.policies.get("baseline")):
        raise KeyError("a fault of ours")
    with pytest.raises(MemoryError), installed.faults_named(lowest):
        raise MemoryError
    with pytest.raises(KeyError), installed.faults_named(lowest, only_its_code=True):
        raise KeyError("a fault of ours")
    assert installed.is_of_others(lowest)
    assert not installed.is_of_others(tp.policies.get("baseline"))


@whole
def test_names_that_are_none_are_answered_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"^name = 'MAPA': no such policy; did you mean mapa-"):
        tp.policies.get("MAPA")
    with pytest.raises(
        ValueError, match=r"^name = 'qqqq': no such policy; known: baseline, mapa-topo-aware, "
    ):
        tp.policies.get("qqqq")
    sharing = ("fgd", "least-stranded", "dot-product", "vector-best-fit", "vector-worst-fit", "gpu-packing")
    assert tp.policies.names(sharing=True) == (*sharing, "gpu-clustering", "random-fit", "two-choices")
    rest = tp.policies.names(sharing=False)
    assert set(rest) == set(tp.policies.names()) - set(tp.policies.names(sharing=True))
    assert len(rest) == 20


@whole
def test_a_policy_of_ours_is_found_without_another_look_at_all_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = tp.policies.get("fgd").name

    def look(**_: object) -> None:
        raise AssertionError("a look through every installed package")

    monkeypatch.setattr("importlib.metadata.entry_points", look)
    assert tp.policies.get("fgd").name == name
    with pytest.raises(AssertionError, match="a look"):  # packages may be installed meanwhile
        tp.policies.get("lowest")
