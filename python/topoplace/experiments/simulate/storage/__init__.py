"""Results of simulations in files: their columns, the placements next to them, and tables as Parquet or CSV.

To change:

- Columns, and what is stored with them: `results.py`; placements, also of moved jobs: `placements.py`; Parquet and
  CSV: `tables.py`.
"""
