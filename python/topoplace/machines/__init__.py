"""The catalogue of built-in machines: `machines.get("dgx1-v100")` returns one by name.

To change:

- A built-in machine: `catalogue.py`; tori of TPUs: `torus.py`.
"""

from __future__ import annotations

from topoplace.machines.catalogue import get, names
from topoplace.machines.torus import torus

__all__ = ["get", "names", "torus"]
