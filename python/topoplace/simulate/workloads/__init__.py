"""Jobs of a simulation: generated, or read from traces and logs."""
