"""Reproductions of the experiments of five papers, one package each; `topoplace papers NAME` prints one.

To change:

- A comparison: `<paper>/rows.py`; its experiment and constants: `<paper>/study.py` and files next to it; a row:
  `claims.py`; rules of verdicts: `rules.py`; numbers of seeds: `seeds.py`.
- The list of reproduced parts and the pages: `tools/paper_pages/`, `tools/write_papers.py`.
"""
