"""Selectors in CEL: what they answer about devices, what they cannot, and how little they may cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubernetes_objects import DRIVER
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import Device, devices
from topoplace_hosts.kubernetes.claims.evaluator import EVALUATOR, Answered, EvaluationEndedError, Evaluator
from topoplace_hosts.kubernetes.claims.selecting import BURST_S, SHARE, Allowances, NotYetError, Selecting

OWN = f'device.attributes["{DRIVER}"]'
CAPACITY = f'device.capacity["{DRIVER}"]'


def device(name: str = "gpu-0", **attributes: Any) -> Device:
    given = {
        "model": {"string": "A100"},
        "index": {"int": 3},
        "fast": {"bool": True},
        "driverVersion": {"version": "550.54.15-beta.2"},
        "modes": {"strings": ["a", "b"]},
        "resource.kubernetes.io/pciBusID": {"string": "0000:05:00.0"},
        **attributes,
    }
    one = {"name": name, "attributes": given, "capacity": {"memory": {"value": "80Gi"}}}
    (found,) = devices({"devices": [one]}, DRIVER, "n0")
    return found


def accepts(text: str, one: Device | None = None) -> bool:
    return bool(Selecting().accepted([one or device()], [text], "default"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f'device.driver == "{DRIVER}"', True),
        ('device.driver == "other.example.com"', False),
        (f'{OWN}.model == "A100"', True),
        (f'{OWN}["model"].startsWith("A") && {OWN}.index > 2', True),
        (f"{OWN}.index in [1, 2]", False),
        (f"{OWN}.fast", True),
        (f"!{OWN}.fast", False),
        ('device.attributes["resource.kubernetes.io"].pciBusID.endsWith(":00.0")', True),
        (f'{OWN}.model.matches("^A[0-9]+$")', True),
        (f'{OWN}.model.lowerAscii() == "a100"', True),
        (f"has({OWN}.model)", True),
        (f"has({OWN}.missing)", False),
        (f'"{DRIVER}" in device.attributes', True),
        ('"nobody.example.com" in device.attributes', False),
        ('has(device.attributes["nobody.example.com"].model)', False),
        (f'"model" in {OWN}', True),
        (f'{CAPACITY}.memory == quantity("80Gi")', True),
        (f'{CAPACITY}.memory.compareTo(quantity("81920Mi")) == 0', True),
        (f'{CAPACITY}.memory.isGreaterThan(quantity("85G"))', True),
        (f'{CAPACITY}.memory.isLessThan(quantity("85G"))', False),
        (f'{CAPACITY}.memory.sub(quantity("40Gi")).add(quantity("1Gi")) == quantity("41Gi")', True),
        (f"{CAPACITY}.memory.asInteger() == 80 * 1024 * 1024 * 1024", True),
        ('quantity("500m").isInteger()', False),
        ('isQuantity("5x")', False),
        (f'{OWN}.driverVersion.isLessThan(semver("550.54.15"))', True),
        (f'{OWN}.driverVersion.compareTo(semver("550.54.15-beta.11")) < 0', True),
        (f"{OWN}.driverVersion.major() == 550", True),
        ('isSemver("1.2")', False),
        (f'{OWN}.modes.includes("b") && {OWN}.model.includes("A100")', True),
        (f'{OWN}.modes.exists(mode, mode == "c")', False),
        (f'{OWN}.exists(key, key == "model")', True),
        (f"{OWN}.size() == 5 && size(device.capacity) == 1", True),
        (f"{CAPACITY} == {CAPACITY} && {CAPACITY} != {OWN}", True),
        ('device.exists(key, key == "driver") && !device.exists(key, key == "pool")', True),
        (f'device.attributes.exists(domain, domain == "{DRIVER}")', True),
        ('quantity("0").sign() == 0 && quantity("500m").sign() == 1', True),
        ('quantity("500m").asApproximateFloat() == 0.5', True),
        ('quantity("1").add(2) == quantity("3000m")', True),
        ('quantity("1") in [quantity("2"), quantity("1")]', True),
        ('semver("1.2.3") == semver("1.2.3+build.7") && semver("1.2.3") != semver("1.2.3-rc.1")', True),
        ('semver("1.2.3") == quantity("1")', False),
        (f'{OWN}.model.upperAscii() == "A100"', True),
        ("device.allowMultipleAllocations", False),
        (f'{OWN}.missing == 1 || {OWN}.model == "A100"', True),  # one side decides
    ],
)
def test_answers(text: str, answer: bool) -> None:
    assert accepts(text) is answer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{OWN}.missing == 1", "no such member"),
        (f"{OWN}.model", "is StringType.* not true or false|not true or false"),
        (f"{OWN}.model > 1", "no matching overload|no such overload"),
        ("1 / 0 == 1", "divide by zero"),
        (f'{CAPACITY}.memory > quantity("1")', "overload"),
        (f"{CAPACITY}.memory.compareTo(1) == 0", ""),
        (f"{CAPACITY}.memory.isLessThan(semver('1.0.0'))", "no such overload"),
        ('quantity("500m").asInteger() == 0', "overflow"),
        ("quantity(5).isInteger()", "no such overload"),
        ("semver(1.5).major() == 1", "no such overload"),
        (f"{OWN}.driverVersion.isInteger()", "no such overload"),
        ("unknown(1)", "unknown"),
        ('semver("one") == semver("two")', ""),
        ('"a" * 1000000000 == "b"', "overload"),
    ],
)
def test_no_answer_is_an_error_that_names_expression_and_device(text: str, message: str) -> None:
    with pytest.raises(
        KubernetesError, match=f"the expression .* about device {DRIVER}/n0/gpu-0.*({message})"
    ):
        accepts(text)


@pytest.mark.parametrize("text", ["", "(((", "device.?driver", "a" * 10_241, "'"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(KubernetesError, match=r"cannot be read|more than 10240 characters"):
        accepts(text)


TEN = str(list(range(10)))
HOSTILE = {
    "nested macros": f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d < 100))))",
    "doubled texts": '["a"]' + ".map(x, x + x)" * 40 + '== ["b"]',
    "lists of lists": f"{TEN}" + ".map(x, [x, x, x, x])" * 3 + " == []",
    "parentheses": "(" * 3000 + "true" + ")" * 3000,
    "negations": "!" * 5000 + "true",
    "reduce": "[1, 2].reduce(sum, i, 0, sum + i) == 3",
    "a function that raises OSError": f'timestamp("2026-01-01T00:00:00Z").getHours("{"a" * 300}") == 1',
    "a file as time zone": 'timestamp("2026-01-01T00:00:00Z").getHours("../../../dev/stdin") == 1',
    "an error text that doubles": f"[{', '.join(['dyn(1)'] * 40)}].exists(x, x)",
    "repeated repetitions": f'"{"a" * 40}b".matches("((a{{1,100}}){{1,100}}){{1,100}}$")',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_expressions_end_with_an_error_that_names_them(text: str) -> None:
    why = ""
    try:
        answer = accepts(text)
    except KubernetesError as error:
        answer, why = False, str(error)
    assert not answer
    assert not why or why.startswith("the expression ")
    assert accepts("true")  # of another tenant, right after it


class Counted(Evaluator):
    """An evaluator that counts, or says what it is told to say."""

    def __init__(self, *answers: Answered | KubernetesError) -> None:
        super().__init__()
        self.asked = 0
        self._answers = list(answers)

    def wait_until_ready(self) -> None:
        if not self._answers:
            EVALUATOR.wait_until_ready()

    def answers(self, text: str, devices: Sequence[Device], allowed_s: float) -> list[Answered]:
        self.asked += len(devices)
        if not self._answers:
            return EVALUATOR.answers(text, devices, allowed_s)
        found = self._answers[0]
        if isinstance(found, KubernetesError):
            raise found
        return [found]


def test_devices_that_look_the_same_are_asked_about_once() -> None:
    counted = Counted()
    selecting = Selecting(counted)
    text = f'{OWN}.model == "A100" && has({OWN}.uuid) || false'
    same = [
        device("gpu-0", uuid={"string": "GPU-0"}),
        device("gpu-1", uuid={"string": "GPU-0"}, index={"int": 9}),
        device("gpu-2", uuid={"string": "GPU-0"}, other={"int": 9}),
    ]
    assert selecting.accepted(same, [text], "a") == same
    assert counted.asked == 1
    others = [device(model={"string": "V100"}, uuid={"string": "GPU-0"}), device("gpu-9")]
    assert selecting.accepted(others, [text], "a") == []
    assert counted.asked == 3


def test_an_answer_that_is_an_error_is_remembered() -> None:
    counted = Counted()
    for name in ("gpu-0", "gpu-1"):
        with pytest.raises(KubernetesError, match=f"about device {DRIVER}/n0/{name}.*overload"):
            Selecting(counted).accepted([device(name)], [f"{OWN}.model > 2"], "a")
    assert counted.asked == 1


def test_an_evaluation_that_was_stopped_is_not_tried_again_at_once() -> None:
    counted = Counted(EvaluationEndedError("takes too much time"))
    for namespace in ("a", "b"):
        with pytest.raises(KubernetesError, match=r"the expression 'stopped == 1' takes too much time"):
            Selecting(counted).accepted([device()], ["stopped == 1"], namespace)
    assert counted.asked == 1


def test_the_time_of_one_namespace_is_not_that_of_another() -> None:
    now = 0.0
    allowances = Allowances(lambda: now)
    selecting = Selecting(Counted(Answered(True, ())), allowances)
    allowances.spend("a", BURST_S + 1.0)
    with pytest.raises(NotYetError, match="the claims of namespace a take long") as raised:
        selecting.accepted([device()], ["one of a"], "a")
    assert selecting.accepted([device()], ["one of b"], "b")
    now += raised.value.after_s + 1.0 / SHARE  # of which b has its part
    assert selecting.accepted([device()], ["one of a"], "a")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 2.0), st.floats(0.0, 5.0)), max_size=30))
def test_namespaces_together_take_no_more_than_their_share(spent: list[tuple[str, float, float]]) -> None:
    now = 0.0
    allowances = Allowances(lambda: now)
    total, last = 0.0, dict.fromkeys("abc", 0.0)
    for name, seconds, pause in spent:
        if allowances.left_s(name) > 0.0:
            allowances.spend(name, seconds)
            total, last[name] = total + seconds, seconds
        now += pause
    assert total <= SHARE * now + 3 * BURST_S + sum(last.values()) + 1e-6


def test_a_process_that_was_killed_is_followed_by_another() -> None:
    evaluator = Evaluator()
    one, other = device(), device("gpu-1")
    try:
        assert [found.value for found in evaluator.answers("true", [one, other], 1.0)] == [True, True]
        process = evaluator._process
        assert process is not None
        process.kill()
        process.wait()
        assert [found.value for found in evaluator.answers("false", [one], 1.0)] == [False]
    finally:
        evaluator.stop()
