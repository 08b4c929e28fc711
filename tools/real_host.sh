#!/usr/bin/env bash
# Tries on a host with GPUs what needs one, and prints a line for each thing: ok, differs (with what), or not there.
#
#     tools/real_host.sh [FOLDER]      # in a clone after `make .venv/.extension`; a few minutes; texts go to FOLDER
#
# It changes nothing on the host. What differs becomes a small text in tests/data. Exit code 1 if something differs.
set -u
cd "$(dirname "$0")/.."
folder=${1:-real-host}
topoplace=${TOPOPLACE:-.venv/bin/topoplace}
python=${PYTHON:-.venv/bin/python}
mkdir -p "$folder"
different=0

say() { printf '%-11s %-34s %s\n' "$1" "$2" "${3:-}"; }
differs() { say differs "$1" "$2"; different=1; }
first_line() { grep -v '^[[:space:]]*$' "$1" | head -n 1 | cut -c1-160; }

# check NAME CODES COMMAND…: run it, keep what it prints; its exit code is one of CODES.
check() {
    local name=$1 codes=$2; shift 2
    timeout 120 "$@" >"$folder/$name.out" 2>"$folder/$name.err"
    local code=$?
    case " $codes " in
        *" $code "*) say ok "$name" "$(first_line "$folder/$name.out")" ;;
        *) differs "$name" "exit code $code: $(first_line "$folder/$name.err")" ;;
    esac
}

# text NAME PROGRAM…: what a tool of the host prints is read by the reader of its format.
text() {
    local name=$1; shift
    if ! command -v "$1" >/dev/null; then say "not there" "$name" "$1"; return; fi
    if ! timeout 60 "$@" >"$folder/$name.txt" 2>"$folder/$name.stderr" || [ ! -s "$folder/$name.txt" ]; then
        say "not there" "$name" "$* says: $(first_line "$folder/$name.stderr")"
        return
    fi
    check "read-$name" "0" "$topoplace" show "$folder/$name.txt"
}

check library 0 "$topoplace" --version
text nvidia-smi nvidia-smi
text nvidia-smi-L nvidia-smi -L
text nvidia-smi-q nvidia-smi -q
text nvidia-smi-q-x nvidia-smi -q -x
text nvidia-smi-topo-m nvidia-smi topo -m
text nvidia-smi-topo-p2p nvidia-smi topo -p2p r
text nvidia-smi-nvlink-s nvidia-smi nvlink -s
text nvidia-smi-nvlink-R nvidia-smi nvlink -R
text rocm-smi rocm-smi --showtopo
text amd-smi amd-smi topology
text lstopo lstopo --of xml
if command -v numactl >/dev/null && numactl --hardware >"$folder/numactl.txt" && [ -s "$folder/nvidia-smi-topo-m.txt" ]; then
    check read-numactl 0 "$topoplace" show "$folder/nvidia-smi-topo-m.txt" --numa "$folder/numactl.txt"
else
    say "not there" numactl
fi

if ! timeout 120 "$topoplace" show --json >"$folder/discovered.json" 2>"$folder/discovered.err"; then
    say "not there" show-host "$(first_line "$folder/discovered.err")"
    exit $different
fi
gpus=$("$python" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["gpus"]))' "$folder/discovered.json")
say ok show-host "$gpus GPUs"
for name in nvidia-smi-L nvidia-smi nvidia-smi-q nvidia-smi-topo-m; do
    [ -s "$folder/read-$name.out" ] || continue
    read_gpus=$("$topoplace" show "$folder/$name.txt" --json |
        "$python" -c 'import json, sys; print(len({one["parent"] or one["name"] for one in
            ({"parent": None, **gpu} for gpu in json.load(sys.stdin)["gpus"])}))')
    [ "$read_gpus" = "$gpus" ] || differs "$name" "$read_gpus GPUs, and NVML finds $gpus"
done
check show-check "0 1" "$topoplace" show --check
check show 0 "$topoplace" show "$folder/discovered.json"
check place-1 0 "$topoplace" place "$folder/discovered.json" --gpus 1
[ -s "$folder/nvidia-smi.txt" ] &&
    check place-busy-from "0 1" "$topoplace" place "$folder/discovered.json" --gpus 1 --busy-from "$folder/nvidia-smi.txt"
if [ "$gpus" -gt 1 ]; then check collective 0 "$topoplace" show "$folder/discovered.json" --collective "$gpus"
else say "not there" collective "a second GPU"; fi

plugin='
import sys
from topoplace import Topology
from topoplace_hosts.kubernetes.device_plugin.device_list import DeviceList
from topoplace_hosts.kubernetes.device_plugin.nvml_health import NvmlHealth
topology = Topology.from_json(open(sys.argv[1]).read())
listed = next(DeviceList({gpu.uuid or gpu.name: gpu for gpu in topology.gpus}).watch(lambda: True))
unhealthy = NvmlHealth()()
print(len(listed.devices), "devices,", len(unhealthy), "unhealthy")
sys.exit(bool(unhealthy))
'
check device-plugin 0 "$python" -c "$plugin" "$folder/discovered.json"
check c-interface 0 "$python" -m pytest -q -n 0 tests/integrations/c/test_c_interface.py
if command -v all_reduce_perf >/dev/null && [ "$gpus" -gt 1 ]; then
    check collective-measure 0 "$topoplace" show measure -o "$folder/measured.json"
else
    say "not there" collective-measure "all_reduce_perf, or a second GPU"
fi
exit $different
