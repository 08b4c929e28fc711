"""Links between two accelerators: their kinds, their published speeds, their weight in a distance."""
