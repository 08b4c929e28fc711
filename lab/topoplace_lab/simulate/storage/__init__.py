"""Files with results of simulations: columns, placements next to them, and tables as Parquet or CSV.

To change:

- Columns, and the data stored with them: `results.py`; placements, also of moved jobs: `placements.py`; Parquet and
  CSV: `tables.py`.
"""
