"""Descriptions of the command line that are made from its parser: completion for shells, and the manual."""
