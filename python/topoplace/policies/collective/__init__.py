"""The policy that rates GPUs by what a collective library's rings carry among them."""
