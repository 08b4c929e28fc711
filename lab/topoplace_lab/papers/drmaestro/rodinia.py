"""The jobs of the thesis' experiments (sections 3.3 and 5.6), and the machines they run on.

The thesis names the applications of the Rodinia suite. For seven applications it states the share of time spent in the
network, alone and next to iperf (a program that saturates the network). It also states that run times are similar, that
each job's application is drawn uniformly, and how often jobs arrive. For the first 800 s or so, long jobs that need
only CPUs and memory hold parts of some machines.

Our assumptions where the thesis is silent:
- A job needs one GPU, as the programs of the suite do, and 9 to 12 of a machine's 160 logical CPUs.
- Run times are 50 to 74 s, 62 s on average. Experiment 1 without disaggregation implies this mean: 512 jobs take 2,486
  s, on 6 GPUs for 800 s and on 16 after that. The mean is (6 * 800 + 16 * 1,686) / 512 s.
- Of every four machines, long jobs hold all CPUs of two, and all but 24 of a third, which leaves enough for two jobs.
  The fourth machine is free. Therefore, 6 GPUs have local CPUs, as in figure 23, and the remaining CPUs are enough
  for 16 jobs. All experiments begin like that.
- Hotspot, whose network times are unknown, has the medians of the other applications.
- With a local GPU, a job spends half as much of its time in the network as with a remote one. In the thesis, jobs also
  slow each other down without disaggregation (figures 29 and 31), so they must use the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from topoplace.cluster.hosts import HostResources
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.topology.topology import Topology
from topoplace_lab.simulate import Workload

ARRIVALS_PER_SECOND: Final = 16.0
"""Jobs submitted per second (section 5.6.1)."""
WARM_UP_SECONDS: Final = 800.0
"""Approximate run time of the long jobs (section 5.6.1); each is drawn within 2 % of it."""
MACHINE: Final = HostResources(cpus=160, memory_gb=512.0)
"""CPUs and memory of a machine (table 6): two sockets of ten cores with eight threads each."""
GPUS: Final = 4
"""K80 boards per machine, section 3.3.1."""
WARM_UP_CPUS: Final = (160, 160, 136)
"""CPUs held by the long jobs: three machines of every four run one long job each."""
LOCAL_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Application:
    """A program of the Rodinia suite with its needs; it uses one GPU.

    seconds: run time alone. cpus: logical CPUs. alone, contended: percent of the run time spent in the network with a
    remote GPU, on an idle network and next to iperf.
    """

    seconds: float
    cpus: int
    memory_gb: float
    alone: float
    contended: float

    def profile(self) -> NetworkProfile:
        """Return the shares of time in the network, as fractions: remote GPU alone and contended, local GPU alone."""
        return NetworkProfile(self.alone / 100, self.contended / 100, self.alone / 100 * LOCAL_SHARE)


# Shares: section 3.3.3; the rest as above.
APPLICATIONS: Final = {
    "b+tree": Application(50.0, 9, 16.0, 0.2, 1.0),
    "nw": Application(74.0, 10, 24.0, 17.0, 49.0),
    "backprop": Application(66.0, 10, 16.0, 5.0, 6.0),
    "gaussian": Application(58.0, 9, 16.0, 1.0, 9.0),
    "hotspot": Application(54.0, 10, 16.0, 2.0, 8.0),
    "lavamd": Application(70.0, 12, 24.0, 2.0, 3.0),
    "pathfinder": Application(56.0, 10, 16.0, 2.0, 11.0),
    "srad": Application(68.0, 12, 24.0, 3.0, 8.0),
}
PROFILES: Final = {name: application.profile() for name, application in APPLICATIONS.items()}


def machines(count: int) -> Topology:
    """Return a cluster of `count` machines like the thesis' testbed: four K80 on PCIe each, 10 Gbit/s Ethernet."""
    machine = Topology.from_links(
        GPUS, [], 12.0, sockets=[0, 0, 1, 1], model="K80", memory_gb=12.0, name="firestone"
    )
    return Topology.cluster(machine, count=count, network=1.25, name=f"{count} firestones")


def workload(num_jobs: int, num_machines: int, seed: int) -> Workload:
    """Return a random workload: long CPU jobs submitted at time 0, and `num_jobs` Rodinia jobs that arrive afterwards.

    There are three long jobs per four machines; `num_machines` is a multiple of four.
    """
    random = np.random.default_rng(seed)
    long = [
        JobGraph.without_gpus(cpus=cpus, memory_gb=2.5 * cpus)
        for _ in range(num_machines // 4)
        for cpus in WARM_UP_CPUS
    ]
    long_seconds = WARM_UP_SECONDS * random.uniform(0.98, 1.02, len(long))
    names = [list(APPLICATIONS)[int(i)] for i in random.integers(len(APPLICATIONS), size=num_jobs)]
    submit = np.cumsum(random.exponential(1 / ARRIVALS_PER_SECOND, num_jobs))
    kinds = {name: _job(name) for name in APPLICATIONS}
    return Workload(
        [*long, *(kinds[name] for name in names)],
        np.concatenate([np.zeros(len(long)), submit]),
        np.concatenate([long_seconds, [APPLICATIONS[name].seconds for name in names]]),
        [*(f"long-{i}" for i in range(len(long))), *(f"{name}-{i}" for i, name in enumerate(names))],
    )


def _job(name: str) -> JobGraph:
    application = APPLICATIONS[name]
    return JobGraph.independent(1).with_(
        cpus=application.cpus, memory_gb=application.memory_gb, profile=name, gpu_model="K80"
    )
