"""The page of `topoplace explore`: click GPUs, and see at once the choice of each policy.

The browser sends what it shows, a state; `answer.answer` returns everything that follows from it, as plain values.

To change:

- Fields of a state, and their checks: `state.py`; the machine, its faults, and the job: `subject.py`.
- Rows, candidates, jobs that still fit: `answer.py`; commands and files to copy: `copies.py`.
- Access, and refused requests: `server.py`; the page itself: `page.html`, `page.css`, and `page.js` with `words.js`,
  `drawing.js`, and `server.js`, which sends requests. `tools/site/recorded.py` makes a page without a server.
- The queue that topoplace-lab simulates: `queue.js`.
"""
