"""Bars of jobs with groups: the packing alone, and decisions on 12,000 GPUs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np

import topoplace as tp
from bars.bar import Bar, Measure
from timing.yardstick import Yardstick

MACHINES = 1500
LEAF, POD = 16, 256


def cluster() -> tp.Cluster:
    """Return machines of 8 GPUs in leaves and pods, of which a third are taken and some have a GPU less."""
    fabric = tp.Fabric.regular(MACHINES, {"leaf": LEAF, "pod": POD})
    found = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric))
    rng = random.Random(18)
    taken = [m for m in range(MACHINES) if rng.random() < 0.3]
    busy = {gpu for m in taken for gpu in range(8 * m, 8 * m + 8)}
    busy.update(rng.sample(range(8 * MACHINES), 200))
    found.allocate("others", sorted(busy))
    return found


def decisions(yardstick: Yardstick) -> Iterator[Bar]:
    del yardstick
    busy = cluster()
    for name in ("least-time", "topo-aware", "mapa-greedy"):
        policy = tp.policies.get(name)
        for data, pipeline, limit in ((16, 4, 20), (64, 8, 300)):
            job = tp.JobGraph.parallel(tensor=8, pipeline=pipeline, data=data)
            grouped = job.grouped("tensor", within="machine").grouped(64, within="leaf")
            policy.place(grouped.with_(name="before"), busy)  # what all jobs share is made once
            start = time.process_time()
            placement = policy.place(grouped, busy)
            seconds = time.process_time() - start
            assert placement is not None
            what = f"{name}, {job.num_tasks:,} ranks in groups of 8 and 64 on 12,000 GPUs"
            yield Bar(what, limit, 1e3 * seconds, "ms")


def packing(yardstick: Yardstick) -> Iterator[Bar]:
    del yardstick
    pods, leaves = -(-MACHINES // POD), -(-MACHINES // LEAF)
    parent = [-1, *[0] * pods, *(1 + i * LEAF // POD for i in range(leaves))]
    parent += [1 + pods + i // LEAF for i in range(MACHINES)]
    free = np.random.default_rng(18).integers(0, 9, MACHINES)
    room = [2**31 - 1] * (1 + pods + leaves) + free.tolist()
    groups = int((free // 4).sum()) // 2
    start = time.process_time()
    found = tp.kernels.pack_groups(parent, room, [-1, *[0] * groups], [0, *[3] * groups], [0, *[4] * groups])
    seconds = time.process_time() - start
    assert found is not None
    yield Bar(f"pack_groups: {groups:,} groups of 4 on 1,500 machines", 10, 1e3 * seconds, "ms")


MEASURES: list[Measure] = [decisions, packing]
