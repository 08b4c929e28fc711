"""Selectors in CEL: what they answer about devices, what they cannot, and how little they may cost."""

from __future__ import annotations

from typing import Any

import pytest

from kubernetes_objects import DRIVER
from topoplace.errors import KubernetesError
from topoplace.integrations.kubernetes.claims.claim_table import MOST_ALL_STEPS
from topoplace.integrations.kubernetes.claims.device import Device, devices
from topoplace.integrations.kubernetes.claims.expressions import Expression

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
    return Expression(text).accepts(one or device(), [MOST_ALL_STEPS])


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
        Expression(text)


TEN = str(list(range(10)))


@pytest.mark.parametrize(
    "text",
    [
        f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d < 100))))",
        '["a"]' + ".map(x, x + x)" * 40 + '== ["b"]',
        f"{TEN}" + ".map(x, [x, x, x, x])" * 3 + " == []",
        "(" * 3000 + "true" + ")" * 3000,
        "[1, 2].reduce(sum, i, 0, sum + i) == 3",
    ],
    ids=["nested macros", "doubled texts", "lists of lists", "parentheses", "reduce"],
)
def test_hostile_expressions_end_with_an_error(text: str) -> None:
    left = [MOST_ALL_STEPS]
    try:
        answer = Expression(text).accepts(device(), left)
    except KubernetesError:
        answer = False
    assert not answer
    assert left[0] >= MOST_ALL_STEPS - 4_000


def test_the_steps_of_one_decision_are_limited_together() -> None:
    left = [100]
    selector = Expression(f"{OWN}.index == 3")
    each = [device(index={"int": i}) for i in range(100)]
    with pytest.raises(KubernetesError, match="too many steps"):
        [selector.accepts(one, left) for one in each]
    assert left == [0]


def test_devices_that_look_the_same_cost_nothing_more() -> None:
    selector = Expression(f'{OWN}.model == "A100" && has({OWN}.uuid)')
    left = [MOST_ALL_STEPS]
    assert selector.accepts(device(uuid={"string": "GPU-0"}), left)
    before = left[0]
    for name, attributes, answer in (
        ("gpu-1", {"uuid": {"string": "GPU-0"}, "index": {"int": 9}}, True),
        ("gpu-2", {"uuid": {"string": "GPU-0"}, "other": {"int": 9}}, True),
    ):
        assert selector.accepts(device(name, **attributes), left) is answer
    assert left[0] == before
    assert not selector.accepts(device(model={"string": "V100"}, uuid={"string": "GPU-0"}), left)
    assert not selector.accepts(device(), left)
    assert left[0] < before
