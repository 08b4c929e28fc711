"""Read the text of `nvidia-smi topo -m` and choose the GPUs for rings of two to four tasks."""

from __future__ import annotations

import topoplace as tp

TEXT = """
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV1\tNV2\tSYS\t0-19\t0
GPU1\tNV1\t X \tSYS\tNV2\t0-19\t0
GPU2\tNV2\tSYS\t X \tNV1\t20-39\t1
GPU3\tSYS\tNV2\tNV1\t X \t20-39\t1
"""

topology = tp.Topology.from_nvidia_smi(TEXT, gpu_model="V100")
print(topology.bandwidth_matrix())

for size in (2, 3, 4):
    job = tp.JobGraph.ring(size).with_(bandwidth_sensitive=True)
    placement = tp.policies.get("mapa-preserve").place(job, tp.Cluster(topology))
    if placement is not None:
        print(
            f"ring of {size}: GPUs {placement.gpus}, bottleneck {placement.scores['bottleneck_bandwidth']:g} GB/s"
        )
