"""Readers of configurations and node labels of Kubernetes and of schedulers for Kubernetes.

To change:

- What labels and capacity mean: `kubernetes_labels.py`; accelerators: `node_devices.py`; devices of drivers:
  `resource_slices.py`.
- Which conditions and taints close a node, and which are noted: `node_state.py`.
- Where nodes are in a text: `node_objects.py` (objects), `kubectl_text.py` (tables).
"""
