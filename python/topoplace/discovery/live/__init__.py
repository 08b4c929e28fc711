"""Discovery of this host: the only part of the package that starts programs and reads the machine's files.

To change:

- Which tools run, in which order: `discover.py`; how they run: `programs.py`.
- Counters of traffic: `counters.py`; what `dcgmi` prints: `discovery/nvidia/dcgm_rates.py`.
"""
