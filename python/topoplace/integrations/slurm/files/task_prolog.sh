#!/bin/sh
# Slurm's TaskProlog for topoplace: CUDA_VISIBLE_DEVICES in the order of the job's tasks, so that device i is that of
# task i. Slurm itself lists devices in ascending order. The order is that of the job's request for exact devices.
[ -n "$CUDA_VISIBLE_DEVICES" ] && [ -n "$SLURM_JOB_ID" ] || exit 0
wanted=$(squeue -h -j "$SLURM_JOB_ID" -o %b 2>/dev/null) || exit 0
order=
for part in $(printf '%s' "$wanted" | tr ',' ' '); do
    number=${part#gres:gpu:g}
    number=${number%:1}
    case $number in '' | *[!0-9]*) exit 0 ;; esac
    order="$order,$number"
done
order=${order#,}
sorted=$(printf '%s' "$order" | tr ',' '\n' | sort -n | paste -sd, -)
# With other numbers than those on the machine, as under cgroups, devices are numbered by rank.
if [ "$sorted" = "$CUDA_VISIBLE_DEVICES" ]; then
    echo "export CUDA_VISIBLE_DEVICES=$order"
fi
