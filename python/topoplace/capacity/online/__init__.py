"""Planning again and again while jobs arrive: controllers, their simulation and its audit."""
