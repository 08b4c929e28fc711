"""Policies to compare with: rules of schedulers in use, of fragmentation, and of NVIDIA's allocator.

`topoplace.policies.get` makes them by name, and `topoplace.policies` has their classes.

To change:

- The list of policies: `lab/pyproject.toml`; their order: `_installed.py`.
- Kueue, Slurm, Volcano, Kubernetes: `schedulers/`; FGD and others that fill clusters: `fragmentation/`, on the machines
  that `sharing/` ranks; the division of a machine's GPUs by their links: `nvidia_allocator.py`.
- DRMaestro as a service that learns: `drmaestro/`.
"""

from __future__ import annotations

from typing import Final

USUAL: Final = ("baseline", "least-time", "kueue-best-fit", "slurm-tree", "kubernetes-default")
"""The policies that most readers want to compare: the lowest free ids, the default, and three schedulers in use."""
USUAL_FOR_SHARES: Final = ("fgd", "least-stranded")
"""Further policies to compare if jobs take shares of GPUs."""
