"""Texts of NVIDIA's tools, and the objects of NVML."""
