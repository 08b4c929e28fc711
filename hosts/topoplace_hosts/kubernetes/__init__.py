"""topoplace inside Kubernetes: a scheduler with claims, an extender of its scheduler, a device plugin on nodes.

To change:

- Its texts of nodes: `texts/`; of waiting and running pods: `snapshot/`; the command: `command.py`, `options/`.
- Devices for Dynamic Resource Allocation: `resource_slices.py`; metrics: `metrics.py`; gRPC: `rpc.py`.
"""
