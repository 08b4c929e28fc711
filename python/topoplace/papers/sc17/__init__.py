"""SC'17 (Amaral et al.): the authors' measurements, their published simulator, and the claims of the paper."""
