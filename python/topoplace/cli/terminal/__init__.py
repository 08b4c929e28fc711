"""What people at a terminal see while a command works."""
