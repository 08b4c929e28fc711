"""Readers of the output of NVIDIA's tools, and of the objects of NVML."""
