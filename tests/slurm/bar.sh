#!/bin/sh
# bar.sh [JOBS]: 2 x JOBS (200) jobs, the second half while the daemon is killed twice and the controller once. Counts lost and doubled jobs
# by files. overhead.sh measures what it costs.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
n=${1:-200}
cluster_start
slots=1000 cores=1000 more_config='"executor": "slurm", "max_queued_per_uid": 400,
 "engines": {"slurm": {"time_factor": 1, "time_margin_s": "5m"}},'
cluster_daemon
marking_job
all_done() { [ "$("$postrider" list -q --all --state "done" | wc -l)" -ge "$1" ]; }
for i in $(seq "$n"); do "$postrider" submit nap -q --set nap=0.2 >/dev/null 2>>"$dir/err"; done
that "$n jobs are done" within 200 all_done "$n"
that "each ran once" each_ran_once "$n"
"$postrider" stats --json >"$dir/out"
"$python" -c "import json; print('slurm.loop_max_busy_ms', json.load(open('$dir/out'))['loop']['max_busy_ms'])"

# ---- the same under faults ----
for i in $(seq "$n"); do
	"$postrider" submit nap -q --set nap=0.5 --key "k$i" >/dev/null 2>>"$dir/err" ||
		{ tried daemon_answers; "$postrider" submit nap -q --set nap=0.5 --key "k$i" >/dev/null 2>>"$dir/err"; }
	case $((i * 100 / n)) in
	25 | 75) # once each
		[ -e "$dir/killed$((i * 100 / n))" ] || { touch "$dir/killed$((i * 100 / n))" && kill -9 "$daemon_pid" &&
			wait "$daemon_pid" 2>/dev/null; daemon_start; } ;;
	50)
		[ -e "$dir/controller" ] || { touch "$dir/controller" && kill -9 "$controller" &&
			wait "$controller" 2>/dev/null; sleep 5; controller_start; } ;;
	esac
done
# A controller that lost its last seconds gives numbers twice, and Slurm drains the nodes that notice. An admin resumes them.
all_done_or_resumed() {
	scontrol update NodeName=n1,n2 State=RESUME 2>/dev/null
	sleep 1
	all_done $((2 * n))
}
that "with two kill -9 of the daemon and one of the controller all are done" within 240 all_done_or_resumed
that "and each ran once" each_ran_once $((2 * n))
"$postrider" list --all --state failed,lost,cancelled,queued,running | head -5
finish
