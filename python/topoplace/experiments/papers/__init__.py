"""Reproductions of the experiments of five papers, one package each; `topoplace papers NAME` prints one."""
