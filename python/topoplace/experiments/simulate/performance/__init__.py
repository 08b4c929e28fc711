"""Models of a job's run time: the effects of its GPUs' links, of other jobs on its machines, and of the network."""
