"""Jobs: the graph of communicating tasks (`JobGraph`), and measured profiles that predict run times."""
