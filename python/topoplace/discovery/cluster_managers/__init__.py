"""Readers of configurations and node labels of Kubernetes and of schedulers for Kubernetes."""
