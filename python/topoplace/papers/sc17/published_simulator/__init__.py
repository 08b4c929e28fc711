"""The simulator that the authors of SC'17 published, rebuilt to the digit."""
