"""Discovery of this host: the only part of the package that starts programs and reads the machine's files.

To change:

- The tools that run, and their order: `discover.py`; how they run: `programs.py`.
"""
