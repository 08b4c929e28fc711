"""The subcommands of `topoplace`, one module each; each reads its arguments, calls the library and prints."""
