#!/bin/sh
# Does a change of a cluster's network (CNI) cost its pods throughput or latency?
#
#   cni-regression.sh BASE HEAD STREAMS.yaml RESULTS [options of netdyno trend]
#
# BASE and HEAD are commands after which the cluster has its network as it was, and as it is, such as
# 'helm upgrade --install cilium cilium/cilium --version 1.18.1 --wait'. The job in STREAMS.yaml (examples/kubernetes/streams.yaml) runs
# ten times (RUNS) in each. Ends with 1 if a figure is worse by 5 % or more under HEAD, and with 2
# where one of them could not be measured.
set -eu
base=$1 head=$2 streams=$3 results=$4
shift 4
die() {
    echo "cni-regression: $*" >&2
    exit 2
}
mkdir -p "$results"
# The order in which results began is their order, whatever they are called.
for state in base head; do
    if [ $state = base ]; then command=$base; else command=$head; fi
    sh -euc "$command" || die "the network was not made: $command"
    run=0
    while [ $run -lt "${RUNS:-10}" ]; do
        run=$((run + 1))
        kubectl apply -f "$streams" >/dev/null || die "the pods were not made"
        kubectl wait --for=condition=complete --timeout=120s job/netdyno-client >/dev/null ||
            die "run $run with $state did not complete: kubectl logs job/netdyno-client"
        kubectl logs job/netdyno-client >"$results/$state-$run.json" || die "run $run with $state left no result"
        kubectl delete -f "$streams" --wait >/dev/null || die "the pods were not removed"
    done
done
# Each pod is a host of its own name.
netdyno trend "$results" --check --least 5% --any-host "$@"
