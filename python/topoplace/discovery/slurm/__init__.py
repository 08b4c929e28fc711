"""Readers of Slurm's configuration files: gres.conf, topology.conf and topology.yaml."""
