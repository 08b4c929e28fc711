"""Readers of descriptions of switched networks (InfiniBand, Ethernet, NVLink) as a Fabric."""
