"""Machines that a policy cannot tell apart: classes of hardware, conditions, and the options of a job on them."""
