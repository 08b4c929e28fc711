"""Policies that fill GPUs and CPUs so that little is left unusable: FGD (ATC'23) and those it is compared with."""
