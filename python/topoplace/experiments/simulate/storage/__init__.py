"""Results of simulations in files: their columns, the placements beside them, and tables as Parquet or CSV."""
