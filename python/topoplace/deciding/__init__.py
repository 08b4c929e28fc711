"""The default policy: the least communication time, and of equal placements the least cost to other jobs.

To change: the order of sets of GPUs on a machine, `cpp/src/decide/machine_sets.cpp`; the machines that a gang gets,
`gangs.py`; where a gang is searched for, the GPUs that it gets there, and lower bounds on its time, `cpp/src/decide/`;
divisions by what each machine can have, `cpp/src/divisions/`; what a job waits for in a queue, `waiting.py`.
"""
