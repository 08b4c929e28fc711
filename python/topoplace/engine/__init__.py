"""Decisions at any size of cluster: requests, admission, machine classes, the queue; no paper's rules."""
