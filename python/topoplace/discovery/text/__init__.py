"""Building blocks of several formats: encodings, XML, YAML, archives, lists of CPUs and hosts."""
