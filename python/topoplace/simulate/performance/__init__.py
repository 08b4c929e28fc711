"""Models of run times: the effect of links, neighbours and the network on a job."""
