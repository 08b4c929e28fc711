"""Decisions about jobs that share GPUs, by rules that look at all machines at once."""
