"""Waiting and running jobs of Kubernetes, as `kubectl` prints them; `pod_groups.py` finds the pods of each job."""
