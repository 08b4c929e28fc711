"""Texts about networks: switches, cables and the tree they form."""
