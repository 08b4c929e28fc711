"""topoplace inside Kubernetes: a device plugin on the nodes.

To change:

- Devices for Dynamic Resource Allocation: `resource_slices.py`; counts and texts: `figures.py`; gRPC: `rpc.py`.
"""
