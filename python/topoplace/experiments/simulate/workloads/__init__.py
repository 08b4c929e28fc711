"""Job lists for simulations, generated at random or read from traces and logs of batch systems."""
