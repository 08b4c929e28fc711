"""What Linux says about NUMA nodes."""
