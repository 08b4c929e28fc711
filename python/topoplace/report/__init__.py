"""Pictures of topologies, schedules and comparisons. matplotlib is imported only when one is drawn."""
