"""Pods and nodes as the API server describes them, read strictly and with limits."""
