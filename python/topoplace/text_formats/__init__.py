"""Exchange formats as arrays and rows, and back; independent of GPUs and jobs."""
