"""topoplace inside Slurm: it decides which GPUs jobs get, and Slurm gives them exactly these."""
