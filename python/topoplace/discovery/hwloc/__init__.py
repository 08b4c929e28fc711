"""Readers of hwloc's XML and of the text of lstopo."""
