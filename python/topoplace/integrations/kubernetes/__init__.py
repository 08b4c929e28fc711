"""topoplace inside Kubernetes: a scheduler with claims, an extender of its scheduler, a device plugin on nodes.

To change:

- Devices for Dynamic Resource Allocation: `resource_slices.py`; counts and texts: `figures.py`; gRPC: `rpc.py`.
"""
