"""Readers of measured bandwidths in the output of benchmark programs."""
