"""The policies of Amaral et al. (SC'17): first come first served, best fit, TOPO-AWARE and TOPO-AWARE-P."""
