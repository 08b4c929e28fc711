"""Readers and writers of exchange formats (CSV, long JSON arrays, packed files) as rows; they know no GPUs and jobs."""
