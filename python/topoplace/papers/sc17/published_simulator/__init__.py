"""The simulator that the authors of SC'17 published, rebuilt with identical results."""
