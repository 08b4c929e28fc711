"""Discovery of this host: the only part of the package that starts programs and reads the machine's files."""
