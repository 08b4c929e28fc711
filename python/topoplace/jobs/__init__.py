"""Jobs and their requirements: `JobGraph`, and the profiles that predict run times."""
