"""Links between two GPUs: their kinds, their published speeds, their weight in a distance.

To change:

- A kind of link, its speed, and the links of a GPU model: `link_kinds.py`; in tables and pictures:
  `drawing/topology_text.py`, `drawing/wires.py`.
"""
