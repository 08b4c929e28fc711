"""Planners, from simple first-principle rules to column generation that proves its plans."""
