"""The schedulers of Amaral et al. (SC'17): first come first served, best fit, and two that know the topology."""
