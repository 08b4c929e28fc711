"""The four policies that MAPA (Ranganath et al., SC'21) compares, for one machine or a small cluster.

To change:

- A choice: `preserve.py`, `greedy.py`, `baseline.py`, `topo_aware.py`; searches, fallbacks and limits: `search.py`;
  several jobs or machines at once: `gangs.py`.
"""
