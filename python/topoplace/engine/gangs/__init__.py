"""Jobs on several machines: what machines offer, which of them share a job, and which task goes where."""
