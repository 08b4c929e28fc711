"""Readers and writers of exchange formats (METIS, DIMACS, CSV) as arrays and rows; they know no GPUs and jobs."""
