"""The jobs of a simulation, generated or read from traces and logs."""
