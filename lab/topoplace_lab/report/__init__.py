"""Tables and pictures of topologies, schedules and comparisons; matplotlib is imported only to draw a picture.

To change:

- Conclusions of a comparison of policies: `comparison.py`; pages of HTML: `page/`.
- Figures of `topoplace trace`: `trace_figures.py`; labels, units and columns of tables: `columns.py`.
- Tables as files: `written_tables.py`; colours of policies: `looks.py`.
"""
