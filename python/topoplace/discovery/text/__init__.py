"""What several formats are made of: encodings, XML, YAML, archives, lists of CPUs and hosts."""
