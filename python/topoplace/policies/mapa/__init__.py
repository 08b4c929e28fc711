"""The policies MAPA (Ranganath et al., SC'21) compares, on one machine or a small cluster."""
