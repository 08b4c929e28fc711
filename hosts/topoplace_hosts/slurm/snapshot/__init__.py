"""Waiting and running jobs of Slurm, as `scontrol` prints them: jobs, nodes, and both joined."""
