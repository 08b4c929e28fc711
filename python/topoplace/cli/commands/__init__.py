"""The subcommands of `topoplace`, one module each, but `compare` is in `simulate`.

Each reads its arguments, calls the library and prints.
"""
