"""One module per command; each reads its arguments, calls the library and prints."""
