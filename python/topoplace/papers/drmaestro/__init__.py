"""DRMaestro (Amaral's thesis, chapter 5): its jobs, its machines and the simulations of its experiments."""
