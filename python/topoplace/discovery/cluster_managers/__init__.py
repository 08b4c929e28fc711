"""Readers of configurations and node labels of Kubernetes and the schedulers on it."""
