"""Job lists for simulations, generated at random or read from traces and logs of batch systems.

To change:

- A reader: its file, and its `from_…` in `workload.py`; the texts and options that it accepts: `trace_readers.py`.
- Columns of published traces: `trace_formats.py`, `trace_rows.py`; facts that rows do not state: `job_columns.py`;
  skipped rows: `row_report.py`; packed files:
  `packed.py`; long JSON arrays: `json_rows.py`; nodes of a log as a job graph: `logged_jobs.py`.
"""
