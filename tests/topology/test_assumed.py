"""Kinds of links of assumed speed: kept, written, shown, checked, and forgotten once the speed is given."""

from __future__ import annotations

import json

import numpy as np
import pytest

import topoplace as tp
from topoplace.drawing import topology_text
from topoplace.topology import compare
from topoplace.topology.speed_overrides import with_link_speeds

NVLINK, NVSWITCH = tp.LinkKind.NVLINK, tp.LinkKind.NVSWITCH
TEXT = "GPU0 GPU1 GPU2\nGPU0 X NV2 SYS\nGPU1 NV2 X SYS\nGPU2 SYS SYS X\n"
GUESSED = tp.Topology.from_nvidia_smi(TEXT)
KNOWN = tp.Topology.from_nvidia_smi(TEXT, "V100")


def test_json_has_the_kinds_only_if_there_are_any() -> None:
    assert json.loads(GUESSED.to_json())["assumed"] == ["nvlink"]
    assert "assumed" not in json.loads(KNOWN.to_json())
    assert tp.Topology.from_json(GUESSED.to_json()) == GUESSED
    cluster = tp.Topology.cluster([GUESSED, KNOWN])
    assert tp.Topology.from_json(cluster.to_json()) == cluster
    assert cluster.assumed == (NVLINK,)
    assert cluster.machine("machine0").assumed == (NVLINK,)


def test_kinds_are_sorted_and_checked() -> None:
    gpus = tuple(tp.Gpu(i, f"GPU{i}") for i in range(2))
    assert tp.Topology(gpus, assumed=(NVSWITCH, NVLINK, NVSWITCH)).assumed == (NVLINK, NVSWITCH)
    with pytest.raises(tp.TopologyError, match=r"^assumed\[1\] = 7 is not a kind of link$"):
        tp.Topology(gpus, assumed=(NVLINK, 7))  # type: ignore[arg-type]
    record = json.loads(GUESSED.to_json()) | {"assumed": ["nvlink9"]}
    with pytest.raises(tp.TopologyError, match=r"^assumed\[0\] = 'nvlink9' is not a kind of link$"):
        tp.Topology.from_json(json.dumps(record))


def test_show_and_check_mark_them(capsys: pytest.CaptureFixture[str]) -> None:
    topology_text.show(GUESSED)
    assert "NVLINK x2 (GB/s assumed)" in capsys.readouterr().out
    topology_text.show(KNOWN)
    assert "assumed)" not in capsys.readouterr().out
    found = [
        finding for finding in compare.check(GUESSED) if "speed" in finding.why and "links" in finding.why
    ]
    assert [(finding.why, finding.serious) for finding in found] == [
        ("the speed of its NVLINK links is assumed", False)
    ]
    assert all("NVLINK" not in finding.why for finding in compare.check(KNOWN))


def test_diff_names_them() -> None:
    changes = {change.what: (change.before, change.after) for change in compare.diff(KNOWN, GUESSED)}
    assert changes["assumed speeds"] == ("", "NVLINK")


def test_given_speeds_are_not_assumed() -> None:
    assert with_link_speeds(GUESSED, {NVLINK: 20.0}).assumed == ()
    assert with_link_speeds(GUESSED, {tp.LinkKind.SYSTEM: 20.0}).assumed == (NVLINK,)
    assert with_link_speeds(GUESSED, np.full((3, 3), 40.0) - 40.0 * np.eye(3)).assumed == ()
    assert GUESSED.with_unhealthy([0]).assumed == (NVLINK,)


def test_xgmi_of_no_known_model_is_assumed() -> None:
    text = "=== Weight between two GPUs ===\n GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n"
    assert tp.read(text).assumed == (tp.LinkKind.XGMI,)
    assert tp.read(text, gpu_model="MI250X").assumed == ()
    assert tp.read(text.replace("15", "40")).assumed == ()
