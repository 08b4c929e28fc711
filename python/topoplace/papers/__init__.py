"""Reproductions of the papers topoplace is built on, one module each: `topoplace papers NAME` prints them."""
