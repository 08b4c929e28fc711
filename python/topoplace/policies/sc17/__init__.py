"""The policies of Amaral et al. (SC'17): first come first served, best fit, TOPO-AWARE and TOPO-AWARE-P.

To change:

- Postponing, and the order of machines: `topo_aware.py`; costs and memory bandwidth: `costs.py`; Algorithm 3 to the
  letter: `bipartition.py`.
"""
