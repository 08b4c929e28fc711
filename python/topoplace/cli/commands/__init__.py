"""The subcommands of `topoplace`, one module each.

Each reads its arguments, calls the library and prints.
"""
