"""Formats of published research code."""
