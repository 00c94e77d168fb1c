# shellcheck shell=sh disable=SC2154 # dir, python, skipped and finish are of lib.sh
# A real Slurm for a test: munged, slurmctld and three slurmd of Debian's packages, all state in $dir/slurm, on
# loopback and on ports that are free. A script reads it first of all, from the root of the repository:
#
#   . tests/slurm/cluster.sh     claims as in tests/cli/lib.sh; leaves with `skipped` where Slurm is not installed
#   cluster_start                more_slurm_conf: further lines of slurm.conf
#   slots=... more_config=...    the daemon's, as tests/cli/daemon_lib.sh reads them
#   cluster_daemon               a daemon; both are ended with the script
#
# cluster_stop ends every process that was started, by its number.
. tests/cli/lib.sh
trap 'cluster_stop; rm -rf "$dir"' EXIT
S=$dir/slurm
SLURM_CONF=$S/slurm.conf
export SLURM_CONF
cluster_pids=
cluster_nodes="n1 n2 n3"

# Debian puts munged and the daemons into /usr/sbin, which is not in everybody's PATH.
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch squeue scancel scontrol sinfo; do
	if ! command -v $program >/dev/null; then
		skipped "jobs on a real Slurm" "$program is not installed: apt-get install slurm-wlm munge"
		finish
	fi
done
if [ ! -x "$python" ]; then
	skipped "jobs on a real Slurm" "needs $python to find free ports"
	finish
fi

cluster_configure() {
	host=$(hostname -s 2>/dev/null || uname -n)
	me=$(id -un)
	# Held open together, so that no two are the same.
	# shellcheck disable=SC2046 # four words are meant
	set -- $("$python" -c 'import socket
s = [socket.socket() for _ in range(4)]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])')
	mkdir -p "$S/munge" "$S/state" "$S/log" "$S/spool"
	for node in $cluster_nodes; do mkdir -p "$S/tmp/$node"; done
	chmod 755 "$dir" "$S" "$S/munge"
	dd if=/dev/urandom of="$S/munge/key" bs=1024 count=1 2>/dev/null
	chmod 600 "$S/munge/key"
	echo "CgroupAutomount=no" >"$S/cgroup.conf"
	# Devices that are none: any device will do, as nothing is done with it.
	printf 'NodeName=n1 Name=gpu File=/dev/%s\n' null zero >"$S/gres.conf"
	cat >"$SLURM_CONF" <<END
ClusterName=postrider
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$S/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$S/state
SlurmdSpoolDir=$S/spool/%n
TmpFS=$S/tmp/%n
SlurmctldPidFile=$S/slurmctld.pid
SlurmdPidFile=$S/slurmd-%n.pid
SlurmctldLogFile=$S/log/slurmctld
SlurmdLogFile=$S/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=64
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdTimeout=10
KillWait=2
MinJobAge=300
MailProg=/bin/true
GresTypes=gpu
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$2 CPUs=8 RealMemory=4000 Gres=gpu:2
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$3 CPUs=8 RealMemory=4000
NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=$4 CPUs=8 RealMemory=4000
PartitionName=near Nodes=n[1-2] Default=YES DefaultTime=60 State=UP
PartitionName=far Nodes=n3 DefaultTime=60 State=UP
PartitionName=first Nodes=n3 DefaultTime=60 State=UP PriorityTier=10
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
${more_slurm_conf:-}
END
}

controller_start() { # [-c]: the first time
	slurmctld -D -f "$SLURM_CONF" "$@" >>"$S/log/out" 2>&1 &
	controller=$!
}

node_start() { # NAME
	slurmd -D -N "$1" -f "$SLURM_CONF" >>"$S/log/out" 2>&1 &
	eval "node_$(echo "$1" | tr . _)=$!"
	cluster_pids="$cluster_pids $!"
}

all_idle() { [ "$(sinfo -hN -o '%N %T' 2>/dev/null | sort -u | grep -c ' idle$')" -eq 3 ]; }

cluster_start() {
	cluster_configure
	${after_configure:-:}
	munged -F --force --key-file="$S/munge/key" --socket="$S/munge/socket" --pid-file="$S/munge/pid" \
		--log-file="$S/munge/log" --seed-file="$S/munge/seed" >>"$S/log/out" 2>&1 &
	cluster_pids=$!
	tries=50
	while [ ! -S "$S/munge/socket" ] && [ $tries -gt 0 ]; do tries=$((tries - 1)) && sleep 0.1; done
	${before_controller:-:} # what needs munged, and what the controller needs
	controller_start -c
	for node in $cluster_nodes; do node_start "$node"; done
	tries=300
	while ! all_idle; do
		tries=$((tries - 1))
		if [ $tries -le 0 ]; then
			skipped "jobs on a real Slurm" "Slurm does not start here: $(tail -n 1 "$S/log/slurmctld" 2>/dev/null)"
			cluster_stop
			finish
		fi
		sleep 0.1
	done
}

# slurmstepd outlives slurmd, so the jobs go first.
cluster_stop() {
	if kill -0 "${controller:-0}" 2>/dev/null && [ -n "${controller:-}" ]; then
		scancel --user="$(id -un)" 2>/dev/null
		tries=50
		while [ -n "$(squeue -h 2>/dev/null)" ] && [ $tries -gt 0 ]; do tries=$((tries - 1)) && sleep 0.1; done
		kill "$controller" 2>/dev/null
		wait "$controller" 2>/dev/null
	fi
	# shellcheck disable=SC2086 # a list of numbers is meant
	[ -z "$cluster_pids" ] || kill $cluster_pids 2>/dev/null
	for pid in $cluster_pids; do wait "$pid" 2>/dev/null; done
	# A step whose node was killed tries for ever to tell of its end.
	for pid in $(pgrep -x slurmstepd); do
		! find "/proc/$pid/cwd" "/proc/$pid/fd" -lname "$S/*" 2>/dev/null | grep -q . || kill -9 "$pid"
	done
	cluster_pids='' controller=''
}

# within SECONDS CONDITION...: becomes true in that time
within() {
	until=$(($(date +%s) + $1))
	shift
	while ! "$@"; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		sleep 0.1
	done
}

# What is left of our jobs goes before the cluster, and the daemon last: it hears of their ends.
cluster_leave() {
	[ -z "$daemon_pid" ] || "$postrider" list -q --all --state queued,running 2>/dev/null |
		xargs -r "$postrider" cancel -q >/dev/null 2>&1
	cluster_stop
	for f in "$dir"/state/jobs/*.started; do # of a node that was killed
		[ ! -e "$f" ] || [ -e "${f%started}exit" ] ||
			kill "$(awk '$1 == "supervisor" { print $2 }' "$f" 2>/dev/null)" 2>/dev/null
	done
	daemon_stop
	rm -rf "$dir"
}

cluster_daemon() {
	. tests/cli/daemon_lib.sh
	trap cluster_leave EXIT
}

# Instead of the job of daemon_lib.sh: one that counts its runs in files, so that none is lost or runs twice unseen.
marking_job() {
	mkdir -m 1777 "$dir/ran"
	cat >"$dir/job.sh" <<END
echo "\$POSTRIDER_JOB" >>$dir/ran/\$POSTRIDER_JOB
echo '{"epoch":1,"accuracy":0.5}'
sleep "\$1" &
trap 'kill \$!; exit 143' TERM
wait \$!
echo '{"epoch":4,"accuracy":0.91}'
exit "\$2"
END
}
each_ran_once() { # HOW-MANY
	[ "$(cat "$dir"/ran/* | wc -l) $(find "$dir/ran" -type f | wc -l)" = "$1 $1" ]
}
all_are() { # STATE JOB...
	state=$1
	shift
	for j in "$@"; do is_state "$j" "$state" || return 1; done
}
status_has() { "$postrider" status "$1" | grep -q -- "$2"; }
