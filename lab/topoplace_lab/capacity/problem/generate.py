"""Generator of random jobs like those of Filippini et al. (section V-A).

The paper states the following. Jobs train AlexNet, ResNet, VGG and DeepSpeech in PyTorch and TensorFlow, with varied
epochs and batch sizes. VGG depends on compute power, AlexNet and DeepSpeech on the disk and on the GPU's memory, ResNet
on both alike. A due date is uniform between a job's shortest run time and twice its longest, counted from submission.
The weight (cost of being late) is uniform in 0.36..1.08 $/h. Inter-arrival times follow a Poisson distribution with a
mean of 45,000 s for one node and 45,000/N s for N nodes (450 s for 100, section V-B). Every job takes longer than
45,000 s even in its fastest configuration (VM type and number of GPUs), and jobs run for hours or days.

The paper does not state the run times, so we model them. On one GTX 1080Ti, a job divides its time between computing,
accessing GPU memory, and waiting for disk and CPU. On another GPU, computing and memory time scale with the speeds in
its data sheet. Several GPUs divide computing and memory time; disk and CPU time stays, and time to exchange gradients
is added. More GPUs therefore always help, but less than proportionally.

The fractions of computing, memory and disk time reproduce ratios of single-GPU times that the authors published with a
later scheduler. There a Quadro P600 takes 3.1 times as long as a GTX 1080Ti for AlexNet, 3.5 to 4.0 for ResNet and 4.7
for VGG. A K80 or M60 takes 1.1 to 1.5 times as long. The numbers of epochs make jobs take one to five days on one
GTX 1080Ti. In the published times, the fastest configuration of a job takes 12 to 45 hours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace_lab.capacity.problem.catalogue import TABLE_II, Catalogue
from topoplace_lab.capacity.problem.job import CapacityJob, checked_hours

MEAN_ARRIVAL_SECONDS: Final = 45_000.0
"""Mean time between two jobs for one node, in seconds (section V-A)."""
WEIGHTS: Final = (0.36, 1.08)
"""Range of weights: cost in $ per hour by which a job misses its due date (section V-A)."""
BATCH_SIZES: Final = (32, 64, 128, 256)
MAX_JOBS: Final = 1 << 20
_REFERENCE: Final = "GTX 1080Ti"


@dataclass(frozen=True, slots=True)
class GpuSpeed:
    """Speed of one GPU: TFLOPS in single precision, memory bandwidth in GB/s. A board with two GPUs counts as two."""

    tflops: float
    memory_gb_per_s: float

    def __post_init__(self) -> None:
        for name in ("tflops", "memory_gb_per_s"):
            _checks.positive(getattr(self, name), name, ValueError, high=1e9)


GPU_SPEEDS: Final[Mapping[str, GpuSpeed]] = MappingProxyType(
    {
        "K80": GpuSpeed(4.37, 240.0),
        "M60": GpuSpeed(4.82, 160.0),
        "Quadro P600": GpuSpeed(1.2, 64.0),
        _REFERENCE: GpuSpeed(11.34, 484.0),
    }
)
"""Speeds by GPU model, from the vendor's data sheets."""


@dataclass(frozen=True, slots=True)
class Network:
    """A neural network to train, with its time per epoch on one GTX 1080Ti.

    epochs: smallest and largest number of epochs of a job. compute, memory: fractions of the time spent on computing
    and on accessing GPU memory.
    """

    name: str
    hours_per_epoch: float
    """Hours in PyTorch with batches of 64."""
    epochs: tuple[int, int]
    compute: float
    memory: float
    disk: float
    """Fraction of the time spent on disk and CPU; `compute`, `memory` and `disk` sum to 1."""
    exchange: float
    """Extra time to exchange gradients among many GPUs, as a fraction of the time on one GTX 1080Ti."""

    def relative_time(self, gpu: GpuSpeed, gpus: int) -> float:
        """Return the time per epoch on `gpus` GPUs of this speed, relative to one GTX 1080Ti."""
        reference = GPU_SPEEDS[_REFERENCE]
        computing = self.compute * reference.tflops / gpu.tflops
        accessing_memory = self.memory * reference.memory_gb_per_s / gpu.memory_gb_per_s
        return (computing + accessing_memory) / gpus + self.disk + self.exchange * (1 - 1 / gpus)


NETWORKS: Final = (
    Network("alexnet", 0.3, (80, 300), compute=0.07, memory=0.23, disk=0.70, exchange=0.08),
    Network("resnet", 1.7, (15, 60), compute=0.18, memory=0.18, disk=0.64, exchange=0.04),
    Network("vgg", 2.7, (10, 40), compute=0.42, memory=0.04, disk=0.54, exchange=0.10),
    Network("deepspeech", 5.0, (5, 20), compute=0.06, memory=0.28, disk=0.66, exchange=0.05),
)
FRAMEWORKS: Final[Mapping[str, float]] = MappingProxyType({"pytorch": 1.0, "tensorflow": 1.1})
"""Run time by framework, relative to PyTorch."""


def generate_jobs(
    num_jobs: int,
    num_nodes: int,
    seed: int = 0,
    catalogue: Catalogue = TABLE_II,
    *,
    gpu_speeds: Mapping[str, GpuSpeed] = GPU_SPEEDS,
    tables: Sequence[NDArray[np.float64]] | None = None,
    mean_arrival_seconds: float = MEAN_ARRIVAL_SECONDS,
) -> tuple[CapacityJob, ...]:
    """Generate `num_jobs` jobs for `num_nodes` nodes, in order of submission; the first arrives at time 0.

    Run times are for the VM types in `catalogue`.

    Args:
        gpu_speeds: Speeds of the GPU models of these VM types.
        tables: Measured run times to draw from instead, each like `CapacityJob.hours`; `catalogue` and `gpu_speeds` are
            then not used.
        mean_arrival_seconds: Mean time between two jobs for one node; it is divided by `num_nodes`.

    Raises:
        ValueError: For a VM type whose GPU model is missing, or an argument out of range.
    """
    _checks.integer(num_jobs, "num_jobs", ValueError, low=0, high=MAX_JOBS)
    _checks.integer(num_nodes, "num_nodes", ValueError, low=1, high=MAX_JOBS)
    _checks.integer(seed, "seed", ValueError, low=0, high=(1 << 63) - 1)
    mean = _checks.positive(mean_arrival_seconds, "mean_arrival_seconds", ValueError, high=1e9)
    draw = _modelled(catalogue, gpu_speeds) if tables is None else _measured(tables)
    random = np.random.default_rng(seed)
    clock, jobs = 0.0, list[CapacityJob]()
    for index in range(num_jobs):
        jobs.append(_job(index, clock, draw, random))
        clock += float(random.poisson(mean / num_nodes)) / 3600
    return tuple(jobs)


def relative_times(
    network: Network, catalogue: Catalogue, gpu_speeds: Mapping[str, GpuSpeed] = GPU_SPEEDS
) -> NDArray[np.float64]:
    """Return the training times of `network` by VM type (row) and number of GPUs (column), relative to one GTX 1080Ti.

    Column k stands for k + 1 GPUs; a time is infinite if the type has fewer GPUs. Raises ValueError for a type whose
    GPU model is not in `gpu_speeds`.
    """
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    times = np.full((len(catalogue), catalogue.max_gpus), math.inf)
    for row, vm_type in enumerate(catalogue):
        if vm_type.gpu_model not in gpu_speeds:
            raise ValueError(f"VM type {vm_type.name!r}: gpu_speeds has no {vm_type.gpu_model}")
        speed = gpu_speeds[vm_type.gpu_model]
        _checks.instance(speed, GpuSpeed, f"gpu_speeds[{vm_type.gpu_model!r}]", ValueError)
        gpus = range(1, vm_type.num_gpus + 1)
        times[row, : vm_type.num_gpus] = [network.relative_time(speed, count) for count in gpus]
    return times


Draw = Callable[[np.random.Generator], tuple[str, NDArray[np.float64]]]
"""A function that draws a job's name and its run times in hours, by VM type and number of GPUs minus 1."""


def _modelled(catalogue: Catalogue, gpu_speeds: Mapping[str, GpuSpeed]) -> Draw:
    tables = [relative_times(network, catalogue, gpu_speeds) for network in NETWORKS]

    def draw(random: np.random.Generator) -> tuple[str, NDArray[np.float64]]:
        which = int(random.integers(len(NETWORKS)))
        network = NETWORKS[which]
        framework = list(FRAMEWORKS)[int(random.integers(len(FRAMEWORKS)))]
        epochs = int(random.integers(network.epochs[0], network.epochs[1] + 1))
        batch = BATCH_SIZES[int(random.integers(len(BATCH_SIZES)))]
        small_batches = 0.9 + 0.1 * 64 / batch
        hours = network.hours_per_epoch * epochs * FRAMEWORKS[framework] * small_batches
        return f"{network.name}-{framework}-{epochs}x{batch}", tables[which] * hours

    return draw


def _measured(given: Sequence[NDArray[np.float64]]) -> Draw:
    tables = [
        checked_hours(table, f"tables[{i}]", dimensions=2)
        for i, table in enumerate(_checks.sequence(given, "tables", ValueError))
    ]
    if not tables:
        raise ValueError("tables is empty")

    def draw(random: np.random.Generator) -> tuple[str, NDArray[np.float64]]:
        which = int(random.integers(len(tables)))
        return f"measured-{which}", tables[which]

    return draw


def _job(index: int, submit: float, draw: Draw, random: np.random.Generator) -> CapacityJob:
    name, hours = draw(random)
    finite: list[float] = hours[np.isfinite(hours)].tolist()
    due = submit + float(random.uniform(min(finite), 2 * max(finite)))
    return CapacityJob(f"{name}-{index}", due, float(random.uniform(*WEIGHTS)), hours, submit)
