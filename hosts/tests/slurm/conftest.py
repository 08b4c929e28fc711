"""A toy Slurm cluster of four DGX-1V for the tests of a module; they are skipped by name where it cannot start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topoplace import Topology, machines
from topoplace_hosts.slurm.testing import SlurmCluster, missing_programs

FOUR_NODES = Topology.cluster(machines.get("dgx1-v100"), 4, names=["n0", "n1", "n2", "n3"])


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    if lacking := missing_programs():
        pytest.skip(f"needs Slurm's daemons, and this host has no {', '.join(lacking)}")
    with SlurmCluster(FOUR_NODES) as cluster:
        yield cluster
