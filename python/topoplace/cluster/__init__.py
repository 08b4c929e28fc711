"""The state of a cluster: which job holds which GPUs, CPUs, memory and drives."""
