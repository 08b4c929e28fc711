"""Tables and pictures of topologies, schedules and comparisons; matplotlib is imported only to draw a picture."""
