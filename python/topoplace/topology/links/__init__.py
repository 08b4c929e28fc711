"""Links between two GPUs: their kinds, their published speeds, their weight in a distance."""
