#!/bin/sh
# How fast Slurm takes jobs: slurm_peer.sh [JOBS]. Starts a cluster of one node in a temporary folder, submits
# JOBS (200) held jobs with sbatch, one after the other and then eight at a time, and stops it again. Prints
# {"seconds":S,"per_second":N,"parallel_seconds":S,"parallel_per_second":N}: of all the jobs, each way;
# {"installed":false} where Slurm or MUNGE is missing. Works as root and as anybody else.
set -eu
jobs=${1:-200}
export PATH="$PATH:/usr/sbin:/sbin"
for p in munged slurmctld slurmd sbatch sinfo; do
	command -v "$p" >/dev/null || { echo '{"installed":false}'; exit 0; }
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/slurm-peer.XXXXXX")
chmod 755 "$dir" # munged wants to see who can get at its socket
munged_pid='' slurmctld_pid='' slurmd_pid=''

stop() { # the id of a process of ours; a stubborn one is killed after five seconds
	[ -n "$1" ] || return 0
	kill -TERM "$1" 2>/dev/null || return 0
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.2
	done
	kill -KILL "$1" 2>/dev/null || true
}
clean_up() {
	trap - EXIT INT TERM
	stop "${!:-}" # a signal may come between the start of one and the note of its id
	stop "$slurmd_pid"
	stop "$slurmctld_pid"
	stop "$munged_pid"
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'clean_up; exit 143' INT TERM

fail() {
	echo "slurm_peer.sh: $1" >&2
	tail -n 5 "$dir"/log/* >&2 2>/dev/null || true
	exit 1
}
until_true() { # the command, for ten seconds
	for _ in $(seq 100); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	return 1
}

host=$(uname -n)
host=${host%%.*}
user=$(id -un)
# Two ports that are probably nobody's; a taken one makes the daemon leave, and us say so.
port=$((20000 + $$ % 20000))

mkdir "$dir/munge" "$dir/state" "$dir/spool" "$dir/tmp" "$dir/log"
chmod 755 "$dir/munge"
(umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
munged -F --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
	--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" >"$dir/log/munged" 2>&1 &
munged_pid=$!

cat >"$dir/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
TmpFS=$dir/tmp
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=64
SlurmdParameters=config_overrides
ReturnToService=2
MaxJobCount=20000
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 RealMemory=4000
PartitionName=p Nodes=n1 Default=YES DefaultTime=60 State=UP
CONF
echo "CgroupAutomount=no" >"$dir/cgroup.conf"
export SLURM_CONF="$dir/slurm.conf"

until_true test -S "$dir/munge/socket" || fail "munged does not start"
slurmctld -D -c -f "$SLURM_CONF" >"$dir/log/slurmctld.out" 2>&1 &
slurmctld_pid=$!
slurmd -D -N n1 -f "$SLURM_CONF" >"$dir/log/slurmd.out" 2>&1 &
slurmd_pid=$!
is_idle() { [ "$(sinfo -hN -o %T)" = idle ]; }
until_true is_idle || fail "the node does not become idle"

printf '#!/bin/sh\nexit 0\n' >"$dir/job.sh"
cd "$dir"
now() { date +%s.%N; }
submit_all() { # how many at a time
	seq "$jobs" | xargs -P "$1" -n 1 sh -c 'exec sbatch -Q --parsable --hold -o /dev/null job.sh >/dev/null'
}
t0=$(now)
submit_all 1 || fail "sbatch failed"
t1=$(now)
submit_all 8 || fail "sbatch failed"
t2=$(now)
held=$(squeue -h -o %i | wc -l)
[ "$held" -eq $((2 * jobs)) ] || fail "$held of $((2 * jobs)) jobs are held"
LC_ALL=C awk -v a="$t0" -v b="$t1" -v c="$t2" -v n="$jobs" 'BEGIN {
	printf "{\"seconds\":%.6f,\"per_second\":%.3f,\"parallel_seconds\":%.6f,\"parallel_per_second\":%.3f}\n",
	       b - a, n / (b - a), c - b, n / (c - b) }'
