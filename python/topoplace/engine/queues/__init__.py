"""Queues that keep waiting jobs grouped by kind, and start them on a cluster without a plan."""
