"""MIG: the profiles of slices into which NVIDIA's GPUs can be cut, and where on a GPU a slice may start.

To change:

- Where a slice may start, for each GPU model: `profiles.py`; which start is chosen, and packing: `slicing.py`.
"""

from __future__ import annotations

from topoplace.mig.profiles import MigProfile, MigSlice, profiles_of, profiles_of_gpu

__all__ = ["MigProfile", "MigSlice", "profiles_of", "profiles_of_gpu"]
