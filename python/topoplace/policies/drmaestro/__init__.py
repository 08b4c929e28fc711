"""DRMaestro (Amaral's thesis, chapter 5): CPUs, GPUs and drives of a batch of jobs by minimum-cost flows, in phases."""
