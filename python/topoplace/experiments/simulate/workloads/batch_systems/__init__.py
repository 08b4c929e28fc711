"""Readers of what batch systems record of their jobs."""
