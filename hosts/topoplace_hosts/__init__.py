"""topoplace-hosts: packages for Slurm, Kubernetes and Ray, which translate and hold no placement logic.

A host's package has its readers, its snapshots, the program that decides inside it, and its command.

To change:

- Formats, snapshots, commands and modules are entry points in `hosts/pyproject.toml`; a format: `formats.py`.
- What must outlive a crash: `journal/`; switches of networks: `networks/`.
- What users may ask of a policy, in Slurm and Kubernetes: `request_fields.py`; the job made of it:
  `requested_job.py`.
- Metrics, what is counted and how it is shown: `metrics.py`; fragmentation of free GPUs: `free_sockets.py`;
  logs: `log.py`; example files: `example_files.py`.

"""
