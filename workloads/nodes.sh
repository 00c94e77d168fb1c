#!/bin/sh
# Several nodes on one machine: network namespaces, joined to one switch by links of a limited rate. A training
# job whose workers are on different nodes then pays for synchronisation, as it does on a cluster.
#
#   nodes.sh [--nodes N] [--rate RATE] -- COMMAND...   makes the nodes (4, 10mbit) and runs COMMAND beside them
#   nodes.sh spread WORKERS -- COMMAND...              one COMMAND a worker, node after node, each with --peers
#                                                      and --rank of its own
#
# RATE is as tc(8) writes it. Needs root, or user namespaces that anybody may make; where there are neither, it
# says so and goes on without links: the workers then meet on the loopback. All of it is in a mount namespace
# of its own and is gone when COMMAND has ended. The machine's own network is not touched.
set -eu
PATH=$PATH:/usr/sbin:/sbin
say() { echo "nodes.sh: $*" >&2; }
usage() {
	say "$1; see --help"
	exit 2
}
whole() { case $2 in '' | *[!0-9]* | 0*) usage "$1: '$2' is no whole number above 0" ;; esac }

# wait_for PID: sets $code. A signal ends the waiting, not the process.
wait_for() {
	while :; do
		code=0
		wait "$1" || code=$?
		kill -0 "$1" 2>/dev/null || break
	done
}

# ---- one worker a node ----

# run_on RANK COMMAND...: never returns; the worker does not outlive this script
run_on() {
	rank=$1
	shift
	if [ -n "$nodes" ]; then
		exec setpriv --pdeathsig KILL nsenter --net="$nodes/node$((rank % count + 1))" "$@"
	fi
	exec setpriv --pdeathsig KILL "$@"
}

# take_ports N: the first of N that no other job on these nodes uses
take_ports() {
	(
		flock 9
		port=$(cat "$nodes/port")
		echo $(((port - 20000 + $1) % 30000 + 20000)) >"$nodes/port"
		echo "$port"
	) 9>"$nodes/lock"
}

spread() {
	if [ $# -lt 3 ] || [ "$2" != -- ]; then
		usage "spread needs WORKERS -- COMMAND"
	fi
	workers=$1
	whole WORKERS "$workers"
	shift 2
	nodes=${POSTRIDER_NODES:-}
	if [ -n "$nodes" ]; then
		count=$(cat "$nodes/count")
		base=$(take_ports $(((workers + count - 1) / count)))
	elif [ "$workers" -gt 1 ]; then
		say "no nodes here: the workers meet on the loopback, which has no limit"
		own=127.$(($$ / 62500 % 250 + 1)).$(($$ / 250 % 250 + 1)).$(($$ % 250 + 1))
	fi
	peers='' r=0
	while [ $r -lt "$workers" ] && [ "$workers" -gt 1 ]; do
		if [ -n "$nodes" ]; then
			peers=$peers,10.77.0.$((r % count + 1)):$((base + r / count))
		else
			peers=$peers,$own:$((20000 + r))
		fi
		r=$((r + 1))
	done
	pids='' r=0
	trap 'kill -TERM $pids 2>/dev/null || :' TERM INT
	while [ $r -lt "$workers" ]; do
		if [ "$workers" -gt 1 ]; then
			run_on $r "$@" --peers "${peers#,}" --rank $r &
		else
			run_on $r "$@" &
		fi
		pids="$pids $!"
		r=$((r + 1))
	done
	first=0
	for pid in $pids; do
		wait_for "$pid"
		[ "$first" -ne 0 ] || first=$code
	done
	exit "$first"
}

# ---- making the nodes ----

at() { # at NODE COMMAND...
	ns=$1
	shift
	nsenter --net="$dir/$ns" "$@"
}

limit() { # limit NODE DEVICE: what leaves by it
	at "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 16kb latency 200ms
}

make_nodes() {
	set -e
	touch "$dir/switch"
	unshare --net="$dir/switch" true
	at switch ip link add br0 type bridge
	at switch ip link set br0 up
	i=1
	while [ $i -le "$n" ]; do
		touch "$dir/node$i"
		unshare --net="$dir/node$i" true
		at "node$i" ip link set lo up
		at "node$i" ip link add eth0 type veth peer name "port$i" netns "$dir/switch"
		at switch ip link set "port$i" master br0 up
		at "node$i" ip addr add "10.77.0.$i/24" dev eth0
		at "node$i" ip link set eth0 up
		limit "node$i" eth0
		limit switch "port$i"
		i=$((i + 1))
	done
	echo "$n" >"$dir/count"
	echo 20000 >"$dir/port"
	: >"$dir/ready"
}

n=4 rate=10mbit inside=''
while [ $# -gt 0 ]; do
	case $1 in --nodes | --rate | --inside) [ $# -ge 2 ] || usage "$1 needs a value" ;; esac
	case $1 in
	spread) shift && spread "$@" ;;
	--nodes) n=$2 && shift 2 ;;
	--rate) rate=$2 && shift 2 ;;
	--inside) inside=$2 && shift 2 ;; # started by itself in the new mount namespace
	--) shift && break ;;
	-h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 0 ;;
	*) usage "what is '$1'?" ;;
	esac
done
[ $# -gt 0 ] || usage "a COMMAND is missing"
whole --nodes "$n"
[ "$n" -le 250 ] || usage "--nodes $n: at most 250"
if [ -n "$inside" ]; then
	dir=$inside
	(make_nodes) >"$dir/log" 2>&1 || :
	[ -e "$dir/ready" ] || exit 1
	export POSTRIDER_NODES="$dir"
	exec "$@"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
user=$([ "$(id -u)" -eq 0 ] || echo "--user --map-root-user")
exec 3<&0 # a command in the background would have no input
# shellcheck disable=SC2086 # no word or two
unshare $user --mount "$0" --nodes "$n" --rate "$rate" --inside "$dir" -- "$@" <&3 3<&- &
pid=$!
trap 'kill -TERM $pid 2>/dev/null || :' TERM INT
wait_for $pid
if [ ! -e "$dir/ready" ]; then
	say "no links of limited rate here ($(tail -n 1 "$dir/log" 2>/dev/null || echo "unshare failed")); going on without"
	"$@" <&3 3<&- & # in the background as well, so that a signal is passed on at once
	pid=$!
	wait_for $pid
fi
exit "$code"
