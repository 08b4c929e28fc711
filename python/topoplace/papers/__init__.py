"""Reproductions of the papers that topoplace builds on, one package each; `topoplace papers NAME` prints one."""
