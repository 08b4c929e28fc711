"""Peak speeds of accelerators, by any name of a product."""

from __future__ import annotations

import pytest

import topoplace as tp
from topoplace.topology.accelerators import PEAK_TFLOP_PER_S, peak_tflop_per_s


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA A100-SXM4-40GB", 312.0),
        ("Tesla V100-SXM2-32GB", 125.0),
        ("Tesla-V100-PCIE-16GB", 112.0),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H800 PCIe", 756.5),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA H100 NVL", 835.5),
        ("nvidia l40s", 362.0),
        ("NVIDIA RTX 6000 Ada Generation", 364.2),
        ("AMD Instinct MI250X / MI250", 191.5),
        ("TPU v4", 275.0),
        ("v5p", 459.0),
        ("H1000", None),
        ("", None),
    ],
)
def test_product_names(name: str, peak: float | None) -> None:
    assert peak_tflop_per_s(name) == peak


def test_every_name_of_the_table_finds_its_own_figure() -> None:
    assert {name: peak_tflop_per_s(name) for name in PEAK_TFLOP_PER_S} == PEAK_TFLOP_PER_S


@pytest.mark.parametrize("machine", tp.machines.names())
def test_accelerators_of_built_in_machines_are_known(machine: str) -> None:
    assert all(peak_tflop_per_s(gpu.model or "") for gpu in tp.machines.get(machine).gpus)


@pytest.mark.parametrize(
    ("model", "multipliers", "megahertz"),
    [
        ("V100", 640 * 64, 1530),  # tensor cores x multiplications each, boost clock
        ("A100", 432 * 256, 1410),
        ("H100", 528 * 512, 1830),
        ("MI300X", 304 * 1024, 2100),
        ("TPU V4", 8 * 128 * 128, 1050),
    ],
)
def test_peaks_follow_from_units_and_clocks(model: str, multipliers: int, megahertz: int) -> None:
    """Each unit multiplies and adds: two operations. The units and clocks are those of the makers' papers."""
    assert PEAK_TFLOP_PER_S[model] == pytest.approx(2 * multipliers * megahertz / 1e6, rel=0.01)
