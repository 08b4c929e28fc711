"""Planners: from first principles to column generation with a proof."""
