"""Sets of GPUs that a job may get together: partitions of several machines, and one GPU of each machine."""
