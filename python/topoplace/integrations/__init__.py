"""topoplace inside cluster managers: the packages here translate, and leave every decision to policies."""
