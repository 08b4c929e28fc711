"""Planners of VMs to rent and jobs to run, from simple rules to column generation with a proof of its plans."""
