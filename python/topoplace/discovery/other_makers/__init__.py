"""Readers of texts about accelerators of makers other than NVIDIA and AMD."""
