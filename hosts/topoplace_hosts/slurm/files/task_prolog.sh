#!/bin/sh
# Slurm's TaskProlog for topoplace. Device i of CUDA_VISIBLE_DEVICES becomes that of the i-th task on this node, as the job's
# AdminComment says, else in the order of its request for exact devices; Slurm itself lists devices in ascending order. A
# batch job that Slurm gave other devices than it was told starts again: a controller that has just restarted does so on
# nodes that have not yet registered with it.
[ -n "$CUDA_VISIBLE_DEVICES" ] && [ -n "$SLURM_JOB_ID" ] || exit 0
job=$SLURM_JOB_ID # of an array, this number may stand for all tasks that wait
[ -z "$SLURM_ARRAY_TASK_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
told=$(squeue -h -j "$job" -O 'tres-per-node:|,admin_comment:|' 2>/dev/null) || exit 0
wanted=${told%%|*}
order=
for part in $(printf '%s' "$wanted" | tr ',' ' '); do
    number=${part#gres[:/]gpu:g} # gres/gpu:g6:1 since Slurm 23.11
    number=${number%:1}
    case $number in '' | *[!0-9]*) exit 0 ;; esac
    order="$order $number"
done
[ -n "$order" ] || exit 0
sorted=$(printf '%s\n' $order | sort -n | paste -sd, -)

if [ -z "$SLURM_STEP_GPUS" ] && [ -n "$SLURM_JOB_GPUS" ] && [ "$SLURM_JOB_GPUS" != "$sorted" ]; then
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ] && scontrol requeue "$job" 2>/dev/null; then
        sleep 60 # the job is ended meanwhile
    fi
    echo "print topoplace: this job was assigned GPUs $sorted, and Slurm has given it $SLURM_JOB_GPUS"
    exit 0
fi

places=${told#*|}
places=${places%|}
case $places in
*';at='*)
    own=
    for run in $(printf '%s' "${places##*;at=}" | tr '+' ' '); do # n[0-1]:6.3, the devices of two tasks on each node
        case ${run%:*} in
        "$SLURMD_NODENAME") ;;
        *[,[]*) scontrol show hostnames "${run%:*}" | grep -qxF "$SLURMD_NODENAME" || continue ;;
        *) continue ;;
        esac
        own="$own $(printf '%s' "${run##*:}" | tr '.' ' ')"
    done
    [ "$(printf '%s\n' $own | sort -n | paste -sd, -)" != "$sorted" ] || order=$own
    ;;
esac

[ "${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}}" = "$sorted" ] || exit 0
if [ "$CUDA_VISIBLE_DEVICES" != "$sorted" ]; then # cgroups number a job's devices from 0
    order=$(for number in $order; do
        rank=0
        for other in $order; do [ "$other" -ge "$number" ] || rank=$((rank + 1)); done
        echo "$rank"
    done)
    ranks=$(printf '%s\n' $order | sort -n | paste -sd, -)
    [ "$CUDA_VISIBLE_DEVICES" = "$ranks" ] || exit 0
fi
echo "export CUDA_VISIBLE_DEVICES=$(printf '%s\n' $order | paste -sd, -)"
