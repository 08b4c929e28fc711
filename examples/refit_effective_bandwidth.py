"""Fit eq. 2 of MAPA to your own measurements and use it for placement.

The table here is invented: a link mix has the speed of its slowest link, minus 3 % for each link.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import topoplace as tp
from topoplace.objectives import EffectiveBandwidth

SPEED = (50.0, 25.0, 12.0)  # GB/s of a double NVLink, a single one, PCIe

mixes = [mix for mix in product(range(6), repeat=3) if 1 <= sum(mix) <= 5]
measured = [min(s for s, count in zip(SPEED, mix, strict=True) if count) * 0.97 ** sum(mix) for mix in mixes]
model = EffectiveBandwidth.fit(np.column_stack([mixes, measured]))

cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
job = tp.JobGraph.ring(5).with_(bandwidth_sensitive=True)
for label, policy in (
    ("the paper's coefficients", tp.policies.Preserve()),
    ("ours", tp.policies.Preserve(coefficients=model.coefficients)),
):
    placement = policy.place(job, cluster)
    if placement is not None:
        print(f"{label}: {placement.gpus}, aggregated {placement.scores['aggregated_bandwidth']:g} GB/s")
