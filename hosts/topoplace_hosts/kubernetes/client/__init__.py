"""A client for the few calls of the API server that a scheduler needs: list, watch, bind, evict, report.

To change:

- Credentials: `access.py`, of programs `exec_plugin.py`; one connection: `connection.py`; bind, evict, report:
  `api.py`; a leader's Lease: `lease.py`; JSON that is nested too deep: `decoding.py`.
"""
