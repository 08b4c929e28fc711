"""Readers of Slurm's texts: gres.conf, topology.conf, topology.yaml, and the output of sinfo, scontrol and squeue.

To change:

- What sinfo and scontrol print: `nodes.py` (the placer asks them itself: `slurm/client/`); which states
  of nodes are closed: `node_states.py`.
- Lines of keys and values: `conf_records.py`.
"""
