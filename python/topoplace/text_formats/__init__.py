"""Readers and writers of exchange formats (CSV, long JSON arrays, packed files), independent of GPUs and jobs."""
