"""Dynamic Resource Allocation: devices that drivers publish, claims of pods, and which devices a claim gets."""
