"""The default policy: the least communication time, and of equal placements the least cost to other jobs.

To change: the order of sets of GPUs on a machine, `ranked_sets.py`; the machines that a gang gets, `gangs.py`; the
tree of these machines, `machine_tree.py`; lower bounds on a gang's time, `bounds.py`; divisions by what each machine
can have, `divisions.py`; what a job waits for in a queue, and how long, `waiting.py`.
"""
