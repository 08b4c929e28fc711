"""Online planning: controllers that plan again whenever jobs arrive or end, their simulation, and its audit."""
