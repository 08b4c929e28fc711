"""Two GPU queues of TSUBAME 2.5: the one in use, and one in which jobs may borrow GPUs from other nodes by rCUDA.

A job requests a number of nodes, with the same number of GPUs and CPUs and the same memory on each. It gets all of them
or waits. A *node* here is the part of a machine that one process of a job gets, with its GPUs, CPUs and memory.

At every event the queue is walked from its head, and each job that fits starts, even if older jobs wait (the loops of
Figs. 5 and 6). There is no reservation, so younger jobs may overtake a job of many nodes for a long time.

To change:

- The walk along the queue, and a base for a new one: `node_queue.py`; which nodes: `g_queue.py`, `r_queue.py`; who
  lends GPUs: `borrowing.py`.
"""
