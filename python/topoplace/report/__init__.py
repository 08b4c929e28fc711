"""Pictures of topologies, schedules and comparisons; matplotlib is loaded when one is drawn."""
