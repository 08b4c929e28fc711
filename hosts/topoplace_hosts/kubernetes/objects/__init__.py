"""Pods and nodes as the API server describes them, read strictly and with limits.

To change:

- What a pod asks for: `requests.py`, `quantities.py`; labels: `selectors.py`; what topoplace writes on pods:
  `annotations.py`; what Kueue and KAI write there: `topology_annotations.py`; limits on values: `fields.py`.
- Taints that keep a pod away: `taints.py`; those that close a node when its text is read:
  `kubernetes/texts/node_state.py`.
"""
