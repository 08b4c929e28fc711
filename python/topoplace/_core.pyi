"""
Native core of topoplace: graphs and kernels. Use it through topoplace, not directly.
"""
from __future__ import annotations
__all__: list[str] = list()
