"""Jobs like those of the paper's experiments (Filippini et al., section V-A), from a seed.

What the paper tells: AlexNet, ResNet, VGG and DeepSpeech in PyTorch and TensorFlow, with epochs and batch size varied;
VGG depends on compute power, AlexNet and DeepSpeech on the disk and on the GPU's memory, ResNet on both alike; due
dates U[min t, 2 max t] after submission, weights U[0.36, 1.08] $/h. Inter-arrival times follow a Poisson distribution,
with a mean of 45,000 s for one node and of 45,000/N s for N (450 s for 100, section V-B): every job takes longer than
45,000 s even where it is fastest, and jobs run for hours or days.

What it does not tell is the table of times. Ours is a model: one GTX 1080Ti spends shares of a job's time computing, in
its memory, and on the disk and the CPU that feed it; another GPU computes and remembers slower as its data sheet has
it, several GPUs share both, what feeds them is as fast as ever, and exchanging gradients comes on top. So more GPUs
always help, and never as much as there are more. The shares are such that one GPU of each model compares with the
others as in the times that the authors published with a later scheduler (where a Quadro P600 takes 3.1 times as long as
a GTX 1080Ti for AlexNet, 3.5 to 4.0 for ResNet, 4.7 for VGG, a K80 or M60 1.1 to 1.5), and epochs such that jobs take
one to five days on one GTX 1080Ti: in those times the fastest way to run a job takes 12 to 45 hours.
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
from topoplace.capacity.problem.catalogue import TABLE_II, Catalogue
from topoplace.capacity.problem.job import CapacityJob, checked_hours

MEAN_ARRIVAL_SECONDS: Final = 45_000.0
"""Between two jobs per node, section V-A."""
WEIGHTS: Final = (0.36, 1.08)
"""$ per hour of tardiness, section V-A."""
BATCH_SIZES: Final = (32, 64, 128, 256)
MAX_JOBS: Final = 1 << 20
_REFERENCE: Final = "GTX 1080Ti"


@dataclass(frozen=True, slots=True)
class GpuSpeed:
    """Of one GPU as a program sees it (boards with two count as two): single precision, memory bandwidth."""

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
"""From the vendor's data sheets."""


@dataclass(frozen=True, slots=True)
class Network:
    """A neural network to train: how long an epoch takes on one GTX 1080Ti, and what with."""

    name: str
    hours_per_epoch: float
    """In PyTorch, batches of 64."""
    epochs: tuple[int, int]
    compute: float
    memory: float
    disk: float
    """Shares of that time, which sum to 1."""
    exchange: float
    """What gradients add where many GPUs exchange them, as a share of the same time."""

    def relative_time(self, gpu: GpuSpeed, gpus: int) -> float:
        """Over that on one GTX 1080Ti."""
        reference = GPU_SPEEDS[_REFERENCE]
        computing = self.compute * reference.tflops / gpu.tflops
        remembering = self.memory * reference.memory_gb_per_s / gpu.memory_gb_per_s
        return (computing + remembering) / gpus + self.disk + self.exchange * (1 - 1 / gpus)


NETWORKS: Final = (
    Network("alexnet", 0.3, (80, 300), compute=0.07, memory=0.23, disk=0.70, exchange=0.08),
    Network("resnet", 1.7, (15, 60), compute=0.18, memory=0.18, disk=0.64, exchange=0.04),
    Network("vgg", 2.7, (10, 40), compute=0.42, memory=0.04, disk=0.54, exchange=0.10),
    Network("deepspeech", 5.0, (5, 20), compute=0.06, memory=0.28, disk=0.66, exchange=0.05),
)
FRAMEWORKS: Final[Mapping[str, float]] = MappingProxyType({"pytorch": 1.0, "tensorflow": 1.1})
"""Time over that in PyTorch."""


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
    """So many jobs for `num_nodes` nodes, in the order of their submission; the first arrives at time 0.

    gpu_speeds: of the models in the catalogue; ValueError naming a VM type whose GPUs are not among them.
    tables: measured times to draw jobs from instead, as `CapacityJob.hours`. mean_arrival_seconds: between two jobs,
    times the number of nodes.
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
    """(types, most GPUs) times of `network` over that on one GTX 1080Ti; infinite for more GPUs than the type has."""
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    times = np.full((len(catalogue), catalogue.max_gpus), math.inf)
    for row, vm_type in enumerate(catalogue):
        if vm_type.gpu_model not in gpu_speeds:
            raise ValueError(f"VM type {vm_type.name!r}: the speed of a {vm_type.gpu_model} is not given")
        speed = gpu_speeds[vm_type.gpu_model]
        _checks.instance(speed, GpuSpeed, f"gpu_speeds[{vm_type.gpu_model!r}]", ValueError)
        gpus = range(1, vm_type.num_gpus + 1)
        times[row, : vm_type.num_gpus] = [network.relative_time(speed, count) for count in gpus]
    return times


Draw = Callable[[np.random.Generator], tuple[str, NDArray[np.float64]]]
"""A name and the times of a job, drawn."""


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
