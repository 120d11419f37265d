#!/usr/bin/env bash
# In the place of containerlab, docker and kubectl, by whose name it is called: nodes are network namespaces without images. Reads no more YAML than
# the files of examples have: a node's name at four blanks, its commands in a list below `exec:`, links as `endpoints: ["a:x", "b:y"]`; a pod's
# or job's arguments as a list on one line.
set -euo pipefail

deploy() {
	local lab node="" part="" line
	lab=$(sed -n 's/^name: //p' "$1")
	local -a links=() commands=()
	while IFS= read -r line; do
		case $line in
		"    "[a-z]*:) node=clab-$lab-$(tr -d ' :' <<<"$line") && ip netns add "$node" && ip -n "$node" link set lo up ;;
		"      exec:") part="exec" ;;
		"      "[a-z]*:*) part= ;;
		"        - "*) [[ $part != exec ]] || commands+=("$node ${line#        - }") ;;
		*endpoints:*) links+=("$(tr -d '",[]' <<<"${line#*endpoints: }")") ;;
		esac
	done <"$1"
	for line in "${links[@]}"; do
		read -r a b <<<"$line"
		ip link add "${a#*:}" netns "clab-$lab-${a%:*}" type veth peer name "${b#*:}" netns "clab-$lab-${b%:*}"
		ip -n "clab-$lab-${a%:*}" link set "${a#*:}" up
		ip -n "clab-$lab-${b%:*}" link set "${b#*:}" up
	done
	for line in "${commands[@]}"; do
		read -r node line <<<"$line"
		# shellcheck disable=SC2086 # cut at blanks, as containerlab does
		ip netns exec "$node" $line
	done
}

# The arguments of containers: kind, then the words.
arguments() {
	python3 - "$1" <<'END'
import json, re, sys
for document in open(sys.argv[1]).read().split("---\n"):
    kind = re.search(r"^kind: (\w+)", document, re.M).group(1)
    for words in re.findall(r"^ +args: (\[.*\])$", document, re.M):
        print(kind, *json.loads(words))
END
}

case ${0##*/} in
containerlab)
	case $1 in
	deploy) deploy "$3" ;;
	destroy) for node in $(ip netns list | sed -n 's/^\(clab-[^ ]*\).*/\1/p'); do ip netns pids "$node" | { xargs -r kill 2>/dev/null || true; }; ip netns delete "$node"; done ;;
	*) exit 2 ;;
	esac
	;;
docker)
	shift
	if [[ $1 == -d ]]; then
		setsid ip netns exec "${@:2}" >/dev/null 2>&1 &
		sleep 0.5
	else
		ip netns exec "$@"
	fi
	;;
kubectl)
	case $1 in
	apply)
		while read -r kind words; do
			# shellcheck disable=SC2086 # no word of them has a blank
			case $kind in
			Pod) setsid ip netns exec far netdyno $words >/dev/null 2>&1 & echo $! >"$HOME/pod" ;;
			Job)
				# A job that could not begin is tried again, as a cluster does: its server may not be there yet.
				for _ in {1..20}; do
					sleep 0.5
					status=0
					netdyno $words >"$HOME/log" || status=$?
					((status == 2)) || break
				done
				((status == 0)) || echo "$status" >"$HOME/failed"
				;;
			esac
		done < <(arguments "$3")
		;;
	wait) [[ ! -e $HOME/failed ]] ;;
	logs) cat "$HOME/log" ;;
	delete)
		pod=$(cat "$HOME/pod")
		kill "$pod"
		# The next one listens at the same port.
		for _ in {1..200}; do [[ -e /proc/$pod ]] || break; sleep 0.05; done
		;;
	*) exit 2 ;;
	esac
	;;
esac
