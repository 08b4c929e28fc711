"""The machine this runs on: the only part of discovery that starts programs and opens files."""
