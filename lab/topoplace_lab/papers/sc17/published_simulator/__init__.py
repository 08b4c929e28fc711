"""A port of the simulator that the authors of the SC'17 paper published; it gives identical results."""
