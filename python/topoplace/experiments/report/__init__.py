"""Tables and pictures of topologies, schedules and comparisons; matplotlib is imported only to draw a picture.

To change:

- What follows from a comparison of policies: `comparison.py`; pages of HTML: `page/`.
- What `show` prints: `topology_text.py`, `fabric_text.py`; every table: `tables.py`; what `trace` says:
  `trace_figures.py`; labels and units: `measures.py`; files of pictures: `figures.py`; colours: `drawing/style.py`.
"""
