"""Subcommands of `topoplace kubernetes` that have a file of their own, and the arguments that several have."""
