"""What runs and what it needs: `JobGraph` and the profiles that predict its run time."""
