"""The GPU queues of TSUBAME 2.5: the one it had, and one whose jobs may borrow GPUs from other nodes by rCUDA.

A job asks for nodes, and on each of them for the same number of GPUs and CPUs and the same memory; it gets all of them
or waits. The queue is walked from its head at every event, and jobs that have room start whether or not older ones
wait, as the loops of Figs. 5 and 6 do: there is no reservation, so that a wide job may be overtaken for long. A node is
a machine as a job of these queues has it: one process with its share of everything.
"""
