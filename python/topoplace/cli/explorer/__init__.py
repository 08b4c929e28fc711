"""The page of `topoplace explore`: click GPUs, and see at once what each policy would choose.

The browser sends what it shows, a state; `answer.answer` returns everything that follows from it, as plain values.

To change:

- What a state may say, and how it is checked: `state.py`; the machine, its faults, and the job: `subject.py`.
- Rows, candidates, what still fits: `answer.py`; commands and files to copy: `copies.py`.
- Who may ask, and what is refused: `server.py`; what people see: `page.html`, `page.css`, and `page.js`
  with `words.js`, `drawing.js`, and `server.js`, which asks. `tools/site/recorded.py` makes a page that asks nobody.
- The simulated queue: `queue.py`, `queue.js`.
"""
