"""Readers of hwloc's XML and of the text of lstopo.

To change:

- Types of objects that count, and their meaning: `hwloc_machine.py`; XML: `hwloc_xml.py`; console: `lstopo_console.py`.
"""
