"""Readers of the output of NVIDIA's tools, and of the objects of NVML.

To change:

- `nvidia-smi topo -m`: header, rows, labels `matrix_rows.py`; the topology that follows `topo_matrix.py`; speeds of
  unknown models `nvlink_guess.py`.
- Other texts: the table `smi_table.py`; `-q` `smi_query.py`; the line of a GPU `gpu_line.py`; MIG slices `mig.py`,
  `gpu_list.py`.
"""
