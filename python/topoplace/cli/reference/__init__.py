"""Descriptions of the command line that are made from its parser: completion for shells, and the manual.

To change:

- What the parser has, as data: `command_tree.py`; what a value can be: `values.py`; the manual:
  `tools/write_manual.py`.
"""
