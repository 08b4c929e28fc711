"""A client for the few calls of the API server that a scheduler needs: list, watch, bind, evict, report."""
