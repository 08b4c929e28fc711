from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from refusals import refusal
from topoplace_lab.research import hiest


def machine(**changes: Any) -> dict[str, Any]:
    """Two sockets of two GPUs each."""
    distance = {
        str(u): {str(v): 0 if u == v else 1 if u // 2 == v // 2 else 20 for v in range(4)} for u in range(4)
    }
    fields = {
        "sockets": ["00", "01"],
        "socket_distance": [[10, 40], [40, 10]],
        "gpu_per_socket": [2, 2],
        "mem_per_gpu": [16, 12],
        "gpu_distance": distance,
    }
    return fields | changes


def text_of(*machines: object) -> str:
    return json.dumps({"machines": {f"m{i}": fields for i, fields in enumerate(machines)}})


def test_machines_of_two_sockets() -> None:
    topology = hiest.parse(text_of(machine(), machine()), pcie_gb_per_s=10.0)
    assert topology.machine_names == ("m0", "m1")
    assert [(gpu.name, gpu.socket, gpu.memory_gb) for gpu in topology.gpus[4:]] == [
        ("GPU0", 0, 16.0),
        ("GPU1", 0, 16.0),
        ("GPU2", 1, 12.0),
        ("GPU3", 1, 12.0),
    ]
    nvlinks = tp.Link(tp.LinkKind.NVLINK1, 2, 40.0)
    direct = [entry for entry in topology.links if entry[2].kind is not tp.LinkKind.SYSTEM]
    assert direct == [(0, 1, nvlinks), (2, 3, nvlinks), (4, 5, nvlinks), (6, 7, nvlinks)]
    assert topology.link(0, 2) == tp.Link(tp.LinkKind.SYSTEM, 1, 5.0)
    assert topology.notes == ("Distances tell no speeds: 1 is taken as 40 GB/s.",)


def test_distances_come_back_as_they_were() -> None:
    topology = hiest.parse(text_of(machine()))
    expected = [[machine()["gpu_distance"][str(u)][str(v)] for v in range(4)] for u in range(4)]
    np.testing.assert_array_equal(topology.distance_matrix(), expected)


def test_what_a_distance_of_1_stands_for_can_be_set() -> None:
    link = tp.Link(tp.LinkKind.NVLINK2, 3, 75.0)
    assert hiest.parse(text_of(machine()), direct=link).link(0, 1) == link


def test_a_crooked_socket_distance_is_noted() -> None:
    topology = hiest.parse(text_of(machine(socket_distance=[[10, 40], [20, 40]]), machine()))
    assert topology.notes[1] == "socket_distance of 1 machines is not symmetric; it is not used."


def distances(u: int, v: int, value: object) -> dict[str, Any]:
    found: dict[str, Any] = machine()["gpu_distance"]
    found[str(u)][str(v)] = value
    return found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "machines['m0'] = [] is not an object"),
        ({}, "machines['m0'].gpu_per_socket = None is not a list"),
        (machine(gpu_per_socket=[2, -1]), "machines['m0'].gpu_per_socket[1] = -1 is not in 0..4094"),
        (machine(gpu_per_socket=[2, 4095]), "machines['m0'].gpu_per_socket[1] = 4095 is not in 0..4094"),
        (
            machine(gpu_per_socket=[2, 1]),
            "machines['m0'].gpu_distance is of GPUs ['0', '1', '2', '3'], but there are 3",
        ),
        (machine(mem_per_gpu=[16]), "machines['m0'].mem_per_gpu = [16] is not a list of 2"),
        (machine(mem_per_gpu=[16, 0]), "machines['m0'].mem_per_gpu = 0 is not above 0"),
        (machine(gpu_distance={}), "machines['m0'].gpu_distance is of GPUs [], but there are 4"),
        (
            machine(gpu_distance=distances(3, 2, 7)),
            "machines['m0'].gpu_distance of 3 to 2 = 7 is not 1 or 20",
        ),
        (
            machine(gpu_distance=distances(2, 3, True)),
            "machines['m0'].gpu_distance of 2 to 3 = True is not 1 or 20",
        ),
        (machine(gpu_distance=distances(1, 1, 1)), "machines['m0'].gpu_distance of 1 to 1 = 1 is not 0"),
        (
            machine(gpu_distance=distances(3, 2, 20)),
            "machines['m0'].gpu_distance of 3 to 2 is 20, but of 2 to 3 1",
        ),
    ],
)
def test_other_machines_are_refused(fields: object, message: str) -> None:
    assert refusal(hiest.parse, text_of(fields)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n x", "line 2: not JSON: Expecting property name enclosed in double quotes"),
        ("{}", "the text.machines = None is not a dict"),
        ("[]", "the text = [] is not an object"),
        ('{"machines": {}}', "machines has 0 entries: must have 1 to 100000"),
        ('{"machines": {"a": {}, "a": {}}}', "'a' appears twice in an object"),
        ("[" * 600_000, "the JSON has more than 500000 objects and lists"),
    ],
)
def test_other_json_is_refused(text: str, message: str) -> None:
    assert refusal(hiest.parse, text) == message


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1" * 5000, '{"machines": {"a": {"gpu_per_socket": [1e999]}}}']
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(tp.TopologyError):
        hiest.parse(text)


def test_recognised() -> None:
    assert hiest.recognised(text_of(machine()))
    assert not hiest.recognised('{"gpus": []}')
