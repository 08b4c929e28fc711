"""topoplace inside Kubernetes: a device plugin on the nodes."""
