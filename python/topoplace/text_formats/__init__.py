"""Readers and writers of exchange formats (CSV), independent of GPUs and jobs."""
