"""hwloc's XML and the text of lstopo."""
