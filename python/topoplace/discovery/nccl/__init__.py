"""Readers of topology files of NCCL and RCCL."""
