"""Topology files of NCCL and RCCL."""
