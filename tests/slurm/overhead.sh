#!/bin/sh
# overhead.sh [ROUNDS [JOBS]]: what handing jobs over costs, beside a plain loop of sbatch. Rounds (9) of 40 jobs each way take turns, so that
# whatever else the machine does meets both. Prints `slurm.overhead`, the median over the rounds of the time until all have ended, and
# `slurm.overhead_cpu`, that of the processor time of everything: clients, daemon, Slurm and the jobs (where a cgroup can count it).
# shellcheck disable=SC2317,SC2154,SC2034,SC2016 # functions are called by others; variables are of the libraries, or of scripts
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
group=/sys/fs/cgroup/cpuacct/postrider-overhead-$$
if mkdir "$group" 2>/dev/null && echo $$ >"$group/cgroup.procs"; then
	counter=$group/cpuacct.usage
else
	group='' counter=''
fi
cluster_start
slots=1000 cores=1000 more_config='"executor": "slurm", "max_queued_per_uid": 400,
 "engines": {"slurm": {"time_factor": 1, "time_margin_s": "5m"}},'
cluster_daemon
ungroup() {
	cluster_leave
	[ -z "$group" ] || { echo $$ >/sys/fs/cgroup/cpuacct/cgroup.procs && sleep 0.5 && rmdir "$group"; } 2>/dev/null
}
trap ungroup EXIT
mkdir -m 1777 "$dir/ended"
printf 'sleep 0.2\necho >%s/ended/$POSTRIDER_JOB\n' "$dir" >"$dir/job.sh"
"$python" tests/slurm/overhead.py "$postrider" "$dir" "${1:-9}" "${2:-40}" "$counter" >"$dir/out" 2>"$dir/err"
code=$?
cat "$dir/out"
that "all jobs of both ended, and the overhead is at most 10 %" test "$code" -eq 0
[ "$code" -eq 0 ] || tail -n 5 "$dir/err"
finish
