"""Queue disciplines of the simulator: who is next, who may overtake, and how many GPUs a group may hold."""
