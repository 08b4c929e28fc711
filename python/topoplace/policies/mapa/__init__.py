"""The four policies that MAPA (Ranganath et al., SC'21) compares, for one machine or a small cluster."""
