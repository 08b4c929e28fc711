"""Texts of AMD's tools, and the driver's directory tree."""
