"""The formats that cluster managers and networks write, for `topoplace.discovery`."""

from __future__ import annotations

from typing import Final

from topoplace.discovery import Format

FORMATS: Final = (
    Format("gres.conf of Slurm", "topoplace_hosts.slurm.texts.gres", rank=1, in_manifests=True),
    Format("nodes of Slurm", "topoplace_hosts.slurm.texts.nodes", rank=1, in_manifests=True),
    Format("topology.conf of Slurm", "topoplace_hosts.slurm.texts.topology_conf", rank=1, in_manifests=True),
    Format("topology.yaml of Slurm", "topoplace_hosts.slurm.texts.topology_yaml", rank=1, in_manifests=True),
    Format(
        "ResourceSlices of Kubernetes",
        "topoplace_hosts.kubernetes.texts.resource_slices",
        rank=1,
        in_manifests=True,
    ),
    Format(
        "Kubernetes nodes", "topoplace_hosts.kubernetes.texts.kubernetes_labels", rank=1, in_manifests=True
    ),
    Format("HyperNodes of Volcano", "topoplace_hosts.kubernetes.texts.volcano", rank=1, in_manifests=True),
    Format("Topograph model", "topoplace_hosts.kubernetes.texts.topograph", rank=1, in_manifests=True),
    Format("NetQ", "topoplace_hosts.networks.netq", rank=3),
    Format("ibnetdiscover", "topoplace_hosts.networks.ibnetdiscover", rank=3),
)
