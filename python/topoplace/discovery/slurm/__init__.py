"""Readers of Slurm's configuration files: gres.conf, topology.conf and topology.yaml.

To change:

- What sinfo and scontrol print: `nodes.py`; which states of nodes are closed: `node_states.py`.
- Lines of keys and values: `conf_records.py`.
"""
