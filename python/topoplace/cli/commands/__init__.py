"""One file a command; each reads its arguments, calls the library and prints."""
