"""Readers of networks of switches as fabrics."""
