"""Readers of formats of published research code."""
