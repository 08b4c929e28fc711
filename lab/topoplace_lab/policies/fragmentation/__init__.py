"""Policies that fill GPUs and CPUs so that little is left unusable: FGD (ATC'23) and those it is compared with.

To change:

- FGD: `fgd.py`; vectors and packing: `vector_rules.py`; jobs of the same kind together: `clustering.py`; at random:
  `chance.py`.
"""
