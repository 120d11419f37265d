# shellcheck shell=bash
# The lab that documents are typed in: read by the shell of each page, in network, mount and process namespaces of its own
# (`unshare`), so that all of it is gone with that shell. ROOM is the page's folder, WORDS the folder with our commands in it.
#
#   host, where commands are typed                          far, the other host
#   eth0  192.0.2.2, 198.18.1.1, 10.77.2.1  ---- cable ----  192.0.2.1 (`server`), 192.0.2.10, .11, 198.18.1.2, 10.77.2.2 (`target`), .3
#   eth1  198.18.0.1                        --.
#   eth2, eth3, eth4                        ---'-- bridge -- 198.18.0.2
#
# The bridge learns nothing: what enters at one port leaves at all others. Both hosts serve files by HTTP at port 80, and a client at
# 192.0.2.1 asks the host for some three times a second. Nobody speaks IPv6, so that interfaces are silent until something is sent.
set -eu
mount --make-rprivate /
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
mount --rbind /sys/fs/cgroup "$ROOM/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$ROOM/cgroup" /sys/fs/cgroup
printf '127.0.0.1 localhost\n192.0.2.1 server netdyno-server\n10.77.2.2 target\n192.0.2.2 host\n' >"$ROOM/hosts"
mount --bind "$ROOM/hosts" /etc/hosts
printf '#!/bin/sh\nexec "$@"\n' >"$WORDS/sudo"
chmod +x "$WORDS/sudo"
# interrupt FILE SECONDS: runs it, and ends it by Ctrl-C so many seconds after it said something: then it is there.
cat >"$WORDS/interrupt" <<'END'
#!/usr/bin/env bash
set -m
bash "$1" &
for ((n = 0; n < 100; n++)); do
	[[ ! -s /proc/self/fd/1 ]] || break
	sleep 0.1
done
sleep "$2"
kill -INT -- "-$!" || echo "interrupt: it ended"
wait "$!"
END
chmod +x "$WORDS/interrupt"
export PATH="$WORDS:$PATH" HOME="$ROOM/home"

ip netns add far
far() { ip netns exec far "$@"; }
for of in "" "far"; do
	${of:+far} sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=0
	${of:+far} sysctl -q -w net.ipv6.conf.lo.disable_ipv6=0
	${of:+far} ip link set lo up
done
ip link add eth0 type veth peer name eth0 netns far
far ip link add bridge address 02:00:00:00:00:05 type bridge ageing_time 0
for n in 1 2 3 4; do
	ip link add "eth$n" type veth peer name "eth$n" netns far
	far ip link set "eth$n" master bridge up
	ip link set "eth$n" up
done
far ip link set bridge up
far ip link set eth0 up
ip link set eth0 up
for address in 192.0.2.1/24 192.0.2.10/24 192.0.2.11/24 198.18.1.2/24 10.77.2.2/24 10.77.2.3/24; do far ip address add "$address" dev eth0; done
for address in 192.0.2.2/24 198.18.1.1/24 10.77.2.1/24; do ip address add "$address" dev eth0; done
far ip address add 198.18.0.2/24 dev bridge
ip address add 198.18.0.1/24 dev eth1

# What the page's commands need, by SERVICES: to start all of it for each page takes longer than most pages.
case $SERVICES in *http*)
	mkdir "$ROOM/www"
	seq 2000 >"$ROOM/www/numbers"
	echo hello >"$ROOM/www/index.html"
	(cd "$ROOM/www" && exec python3 -m http.server 80 >/dev/null 2>&1) &
	(cd "$ROOM/www" && exec ip netns exec far python3 -m http.server 80 >/dev/null 2>&1) &
	until curl -s -o /dev/null http://198.18.0.2/ && far curl -s -o /dev/null http://192.0.2.2/; do sleep 0.1; done
	(exec >/dev/null 2>&1; while sleep 0.3; do far curl -s http://192.0.2.2/numbers; done) &
	;;
esac
# UDP ports that take what probes export, and say nothing.
case $SERVICES in *sink*)
	far python3 -c '
import socket, time
kept = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for one, port in zip(kept, (2055, 4739, 9995)): one.bind(("0.0.0.0", port))
time.sleep(9999)' &
	until [ "$(far ss -lnuH | wc -l)" -ge 3 ]; do sleep 0.1; done
	;;
esac

# turn NUMBER COMMAND: pages are typed side by side. What loads a CPU as far as it goes, or sends before all else, is typed alone.
turn() {
	local text how
	text=$(cat "$ROOM/$1.sh")
	shift
	case $text in
	*--topspeed* | *trial* | *"netdyno search"* | *latency-under-load*) how=--exclusive ;;
	*"netdyno lab"* | *" send "* | *replay* | *endpoint* | *iperf3* | *netperf*) how=--shared ;;
	*) how= ;;
	esac
	${how:+flock -o "$how" "$TURN"} "$@"
}

# typed NUMBER HOW SECONDS: types a command. HOW: `ends`, within SECONDS or it hangs; `until`, by Ctrl-C SECONDS after its first words; `stays`, until the
# page ends. With `far-` before it, on the other host. Writes its output, and its status or why it has none.
typed() {
	local n=$1 how=${2#far-} seconds=$3 began=$EPOCHREALTIME status=0
	local -a at=()
	[ "$how" = "$2" ] || at=(ip netns exec far)
	case $how in
	ends) turn "$n" "${at[@]}" timeout -k 5 "$seconds" bash "$ROOM/$n.sh" >"$ROOM/$n.out" 2>&1 </dev/null || status=$? ;;
	until)
		turn "$n" "${at[@]}" timeout -k 5 120 interrupt "$ROOM/$n.sh" "$seconds" >"$ROOM/$n.out" 2>&1 </dev/null || status=$?
		! grep -q '^interrupt: it ended' "$ROOM/$n.out" || status="$status by itself"
		;;
	stays)
		local before tries
		before=$(listening)
		"${at[@]}" setsid bash "$ROOM/$n.sh" >"$ROOM/$n.out" 2>&1 </dev/null &
		STAYS="$STAYS $n:$!"
		# A server is ready when it listens. What neither listens nor says anything has its time.
		for ((tries = 0; tries < 50; tries++)); do
			if [ "$(listening)" != "$before" ] || [ -s "$ROOM/$n.out" ]; then break; fi
			sleep 0.1
		done
		sleep 0.5
		return
		;;
	esac
	echo "$status $(((${EPOCHREALTIME/./} - ${began/./}) / 1000))" >"$ROOM/$n.status"
}

# Sockets that wait for others, on both hosts.
listening() { { ss -lntuxH; ip netns exec far ss -lntuxH; } | wc -l; }

# What was to stay must be there still.
ended() {
	local one
	for one in $STAYS; do
		kill -0 "${one#*:}" 2>/dev/null && echo 0 0 >"$ROOM/${one%:*}.status"
	done
	touch "$ROOM/done"
}
STAYS=
cd "$ROOM/desk"
