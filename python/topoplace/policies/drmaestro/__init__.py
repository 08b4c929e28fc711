"""DRMaestro (Amaral's thesis, chapter 5): place the processes, GPUs and drives of a batch by minimum-cost flows."""
