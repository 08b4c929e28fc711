"""Readers of Linux's description of NUMA nodes."""
