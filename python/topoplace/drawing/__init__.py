"""Drawings of topologies (machines, tori, clusters up to 12,500 machines) and of the GPUs of a job.

`topoplace.drawing.svg(topology, busy=..., chosen=...)` returns an SVG, made without any other package.

To change:

- Colours, line widths, light and dark: `style.py`; shapes: `scene.py`; the text of an SVG: `svg_text.py`; the legend:
  `legend.py`.
- The states of GPUs: `states.py`; which links are lines, and their classes: `wires.py`.
- Where things are: machines with direct links `ring_layout.py`, those with switches or PCIe alone `row_layout.py`, tori
  `torus_layout.py`, many machines `cluster_layout.py`; which of them a topology gets: `picture.py`.
- Which lines a job uses, and the slowest of its rings: `traffic.py`.
- Two placements in one picture: `compared.py`; lines of text: `terminal.py`, tables `tables.py`, what
  `show` prints `topology_text.py` and `fabric_text.py`; other formats than SVG: `topology_plot.py`, `figures.py`.
"""

from __future__ import annotations

from topoplace.drawing.compared import before_after
from topoplace.drawing.picture import svg

__all__ = ["before_after", "svg"]
