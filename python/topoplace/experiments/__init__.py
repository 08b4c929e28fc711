"""Experiments on the library: the simulator, sweeps, the suite, reports, papers, and the capacity planner.

A scheduler embeds nothing of this: no package outside `experiments` and `cli` imports it.
"""
