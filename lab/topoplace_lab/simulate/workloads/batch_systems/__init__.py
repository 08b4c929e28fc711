"""Readers of the job records of batch systems."""
