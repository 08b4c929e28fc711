"""Readers of hwloc's XML and of the text of lstopo.

To change:

- Which types count, and what they become: `hwloc_machine.py`; XML: `hwloc_xml.py`; console: `lstopo_console.py`.
"""
