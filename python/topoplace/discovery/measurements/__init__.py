"""Measured bandwidths: what benchmark programs print."""
