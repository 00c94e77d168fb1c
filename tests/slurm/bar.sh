#!/bin/sh
# bar.sh [JOBS]: the overhead of handing jobs over (200 of them), beside a plain loop of sbatch in the same run, and then as many
# while the controller and the daemon are killed. Prints `slurm.overhead`, and counts lost and doubled jobs by files.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
. tests/slurm/cluster.sh
trap 'cluster_stop; rm -rf "$dir"' EXIT
n=${1:-200}
cluster_start
mkdir -m 1777 "$dir/ran" "$dir/plain"
slots=1000 cores=1000 more_config='"executor": "slurm", "max_queued_per_uid": 400,
 "engines": {"slurm": {"time_factor": 1, "time_margin_s": "5m"}},'
. tests/cli/daemon_lib.sh
trap 'cluster_stop; daemon_clean_up' EXIT
cat >"$dir/job.sh" <<END
echo "\$POSTRIDER_JOB" >>$dir/ran/\$POSTRIDER_JOB
sleep "\$1"
echo '{"epoch":4,"accuracy":0.91}'
END
seconds() { "$python" -c 'import time; print(time.monotonic())'; }
all_plain() { [ "$(find "$dir/plain" -type f | wc -l)" -ge "$n" ]; }
all_done() { [ "$("$postrider" list -q --all --state "done" | wc -l)" -ge "$1" ]; }
wait_for() { # SECONDS CONDITION...
	until=$(($(date +%s) + $1))
	shift
	while ! "$@"; do
		[ "$(date +%s)" -lt $until ] || return 1
		sleep 0.05
	done
}

plain() { # the same command, submitted as a user would
	from=$(seconds)
	for i in $(seq "$n"); do
		printf '#!/bin/sh\nsleep 0.2\necho done >%s/plain/%s\n' "$dir" "$i" |
			sbatch --parsable --time=5 --output=/dev/null >/dev/null || echo "sbatch failed"
	done
	wait_for 200 all_plain
	plain_s=$("$python" -c "print($(seconds) - $from)")
}
ours() {
	from=$(seconds)
	for i in $(seq "$n"); do "$postrider" submit nap -q --set nap=0.2 >/dev/null 2>>"$dir/err"; done
	echo "slurm.submit_loop $("$python" -c "print($(seconds) - $from)") s"
	wait_for 200 all_done "$n"
	ours_s=$("$python" -c "print($(seconds) - $from)")
}
plain
ours
echo "slurm.plain $plain_s s, slurm.ours $ours_s s, $n jobs"
"$python" -c "print('slurm.overhead %.3f' % ($ours_s / $plain_s - 1))"
"$postrider" stats --json >"$dir/out"
"$python" -c "import json; print('slurm.loop_max_busy_ms', json.load(open('$dir/out'))['loop']['max_busy_ms'])"
that "all are done" all_done "$n"
that "each ran once" test "$(cat "$dir"/ran/* | wc -l) $(find "$dir/ran" -type f | wc -l)" = "$n $n"

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
wait_for 240 all_done_or_resumed
that "with two kill -9 of the daemon and one of the controller all are done" all_done $((2 * n))
that "and each ran once" test "$(cat "$dir"/ran/* | wc -l) $(find "$dir/ran" -type f | wc -l)" = "$((2 * n)) $((2 * n))"
"$postrider" list --all --state failed,lost,cancelled,queued,running | head -5
finish
