"""MIG: the profiles of slices into which NVIDIA's GPUs can be cut, and where on a GPU a slice may start."""

from __future__ import annotations

from topoplace.mig.profiles import MigProfile, MigSlice, profiles_of, profiles_of_gpu

__all__ = ["MigProfile", "MigSlice", "profiles_of", "profiles_of_gpu"]
