"""DRMaestro (Amaral's thesis, chapter 5): place the processes, GPUs and drives of a batch by minimum-cost flows.

To change:

- Options and batches: `policy.py`; one batch, and who waits: `decision.py`; costs: `costs.py`; places offered:
  `phases.py`; processes with their needs: `bundles.py`.
- Load of the network: `network.py`.
- Jobs of one process, decided without a flow: `beside.py`; free resources as columns: `free_resources.py`.
"""
