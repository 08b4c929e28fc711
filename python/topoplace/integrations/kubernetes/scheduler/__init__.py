"""A scheduler for pods that need GPUs: it gives them a node and the GPUs there, and binds them through the API."""
