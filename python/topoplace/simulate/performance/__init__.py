"""Models of run times: how links, neighbours and the network slow a job down."""
