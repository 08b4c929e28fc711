"""Readers of the output of AMD's tools, and of the driver's directory tree."""
