"""Claims of pods in the scheduler: which devices they get by its policy, and how that is written."""
