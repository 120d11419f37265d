#!/bin/sh
# Does a change of an XDP program cost the device that it runs on a rate, loss or latency?
#
#   xdp-regression.sh BASE.o HEAD.o JOB.yaml RESULTS [options of netdyno trend]
#
# One object after the other is the device of a lab, ten times each by the same job, on the same machine: runners differ by more
# than what is looked for. Ends with 1 if HEAD is worse by 2 % or more. It needs root, and iproute2 that loads XDP objects.
set -eu
base=$1 head=$2 job=$3 results=$4
shift 4
for object in "$base" "$head"; do
    netdyno lab --dut bridge -- sh -euc '
        # (libbpf looks for a file system of its own, which is not there in a network namespace.)
        ip netns exec dut sh -euc "mount -t bpf bpf /sys/fs/bpf
            ip link set dev dut0 xdpgeneric obj \"\$0\" sec xdp" "$1"
        for run in 1 2 3 4 5 6 7 8 9 10; do
            netdyno run "$2" --keep "$3" --quiet >/dev/null || [ $? = 1 ]
        done' - "$object" "$job" "$results"
done
netdyno trend "$results" --check --least 2% "$@"
