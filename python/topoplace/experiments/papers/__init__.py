"""Reproductions of the experiments of five papers, one package each; `topoplace papers NAME` prints one.

To change:

- A comparison: `<paper>/rows.py`; its experiment and constants: `<paper>/study.py` and files next to it; a row:
  `claims.py`; how a verdict follows: `rules.py`; how many seeds: `seeds.py`.
- What is reproduced: `coverage.py`, here and in each paper; the pages: `page.py`, `record.py`,
  `tools/write_papers.py`.
"""
