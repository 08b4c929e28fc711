"""The policy of topoplace itself: the least communication time, and of equal placements the least cost to others.

To change: what counts among the GPUs of a machine and in which order, `machine_sets.py`; which machines a gang gets,
`gangs.py`; what is known of these machines, `machine_tree.py`; how fast a gang can be at best, `bounds.py`;
what a job waits for in a queue, and how long, `waiting.py`.
"""
