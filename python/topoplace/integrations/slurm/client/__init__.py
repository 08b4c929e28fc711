"""Slurm's commands and what they print: jobs, nodes, reservations, devices; text in, records out."""
