"""The state of a cluster: the GPUs, CPUs, memory and drives that each job holds."""
