#!/bin/sh
# The engine `slurm` on a real Slurm of three nodes, with everything that goes wrong there: a cancel, a time limit, a
# node that is killed, a controller that is away, a daemon that is killed. Every job counts its runs in a file, so that
# none is lost and none runs twice unseen.
# shellcheck disable=SC2317,SC2154,SC2016 # functions are called by `tried` and `that`; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_start

root=false
[ "$(id -u)" -ne 0 ] || root=true
# shellcheck disable=SC2034 # daemon_lib.sh reads these
slots=20 cores=20 nap_max=600 more_config='"executor": "slurm",
 "engines": {"slurm": {"poll_s": 0.5, "record_grace_s": 2, "time_factor": 1, "time_margin_s": 0},
             "nowhere": {"engine": "slurm", "partition": "nowhere"}},
 "tenants": {"red": {"users": [60001]}, "green": {"users": [60002]}, "blue": {"users": [60003], "partition": "far"}},'
# shellcheck disable=SC2034 # likewise
more_types='"device": {"argv": ["/bin/sh", "-c", "echo devices $CUDA_VISIBLE_DEVICES slurm $SLURM_JOB_ID", "{batch}"],
  "batches": [64], "gres": "gpu:1",
  "params": {"network": {"kind": "word", "default": "simplenet"}, "epochs": {"kind": "integer", "default": 4},
             "samples": {"kind": "integer", "default": 12000}}},'
cluster_daemon
marking_job
# as UID COMMAND...: where we may, and else as we are
as() {
	uid=$1
	shift
	if $root; then setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; else "$@"; fi
}
submit_as() { # UID ARGUMENT...: the id is in $id
	uid=$1
	shift
	id=$(as "$uid" "$postrider" submit nap -q "$@" 2>>"$dir/err")
}
started() { [ -n "$(find "$dir/state/jobs" -name "$1.*.started")" ]; }
ran_once() {
	for j in "$@"; do [ "$(wc -l <"$dir/ran/$j" 2>/dev/null)" = 1 ] || return 1; done
}
slurm_id() { sed -n 's/^id //p' "$dir/state/jobs/$1".*.engine; }

# ---- a job that hangs: Slurm looks at limits twice a minute, so it is asked about at the end ----
submit_as 60001 --set nap=300
limited=$id
within 10 started "$limited"
that "the time limit comes from our bound, which is below a minute" \
	test "$(squeue -h -j "$(slurm_id "$limited")" -o %l)" = 1:00

# ---- jobs of three tenants, with promises ----
jobs=
for i in 1 2 3 4 5 6 7 8 9 10; do
	for uid in 60001 60002 60003; do
		submit_as $uid --set nap=0.$((i % 5 + 1)) --slo 5m
		jobs="$jobs $id"
	done
done
# shellcheck disable=SC2086 # a list of ids is meant
{
	that "30 jobs of three tenants are done" within 60 all_are "done" $jobs
	that "each ran once" ran_once $jobs
	"$postrider" list --json --all >"$dir/out"
}
json "$dir/out" "all were promised, and all promises were kept" \
	"sum(j['verdict'] == 'promised' and j['slo_outcome'] == 'met' for j in d['jobs']) == 30"
json "$dir/out" "their accuracy is known" "sum(j['accuracy'] == 0.91 for j in d['jobs']) == 30"
if $root; then
	that "a tenant has its partition" sh -c "squeue -h -t all -o '%P' | grep -c far | grep -qx 10"
else
	skipped "a tenant has its partition" "needs root to be three users"
fi

# ---- devices ----
id=$("$postrider" submit device -q 2>>"$dir/err")
that "a job with a device is done" within 15 is_state "$id" "done"
that "and is told which one it has" grep -qx "devices [0-9][0-9]* slurm $(slurm_id "$id")" "$dir/state/jobs/$id/stdout"

# ---- cancel ----
submit_as 60002 --set nap=50
within 10 started "$id"
run cancel "$id"
that "a running job is cancelled" within 15 is_state "$id" cancelled
scontrol update PartitionName=near State=DOWN
submit_as 60002 --set nap=1
that "a job that Slurm does not start waits, and says why" within 10 status_has "$id" "waiting for slurm: PENDING, PartitionDown"
run cancel "$id"
that "it is cancelled before it starts" within 15 is_state "$id" cancelled
scontrol update PartitionName=near State=UP
that "and has not run" test ! -e "$dir/ran/$id"
submit_as 60002 --set nap=50
within 10 started "$id"
scancel "$(slurm_id "$id")"
that "a job that somebody else cancels is cancelled" within 15 is_state "$id" cancelled
run status "$id"
says out "cancelled at slurm, not by postrider" "and says so"

# ---- preempted, and requeued by somebody ----
if $root; then
	submit_as 60003 --set nap=50
	preempted=$id
	within 10 started "$preempted"
	printf '#!/bin/sh\nsleep 1\n' | sbatch --partition=first --cpus-per-task=8 --chdir=/ --output=/dev/null >/dev/null
	that "a job that is preempted has failed" within 40 is_state "$preempted" failed
	run status "$preempted"
	says out "slurm gave its place to another (PREEMPTED" "with the reason"
else
	skipped "a job that is preempted" "needs root"
fi
submit_as 60001 --set nap=2
within 10 started "$id"
scontrol requeue "$(slurm_id "$id")" >/dev/null 2>&1
that "a job that somebody requeues is done all the same" within 30 is_state "$id" "done"
that "and ran once" ran_once "$id"

# ---- the controller is away ----
submit_as 60001 --set nap=2
before=$id
within 10 started "$before"
kill "$controller"
wait "$controller" 2>/dev/null
submit_as 60001 --set nap=1
during=$id
that "without a controller a job waits for slurm" within 20 status_has "$during" "waiting for slurm: "
run status "$during" --json
json "$dir/out" "which a program can tell" "d['waiting']['code'] == 'engine'"
that "one that runs ends by its record" within 15 is_state "$before" "done"
controller_start
that "the job runs when the controller is back" within 30 is_state "$during" "done"
that "nothing ran twice" ran_once "$before" "$during"

# ---- the daemon is killed ----
jobs=
for i in 1 2 3 4 5 6 7 8 9 10; do
	submit_as 6000$((i % 2 + 1)) --set nap=4
	jobs="$jobs $id"
done
within 10 started "$id"
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_start
# shellcheck disable=SC2086 # a list of ids is meant
{
	that "after a kill -9 of the daemon 10 jobs are found again and done" within 30 all_are "done" $jobs
	that "none ran twice" ran_once $jobs
}
that "the job of each identity is one job of Slurm" sh -c "squeue -h -t all -o %k | sort | uniq -d | wc -l | grep -qx 0"

# ---- a node is killed; Slurm takes half a minute to see it ----
if $root; then
	submit_as 60003 --set nap=300
	stranded=$id
	within 10 started "$stranded"
	kill -9 "$node_n3"
	wait "$node_n3" 2>/dev/null
fi

# ---- refused ----
sed -i 's/"executor": "slurm"/"executor": "nowhere"/' "$dir/config.json"
run reload
submit_as 60001
that "a job that Slurm refuses has failed" within 10 is_state "$id" failed
run status "$id"
says out "nowhere refused it: sbatch: error: invalid partition specified: nowhere" "with what sbatch said"

# ---- what takes Slurm its time ----
if $root; then
	that "a job whose node was killed is lost" within 60 is_state "$stranded" lost
	run status "$stranded"
	says out "its node failed, says slurm (NODE_FAIL" "with the reason"
else
	skipped "a job whose node was killed" "needs root"
fi
that "a job that is over its time limit has failed" within 100 is_state "$limited" failed
run status "$limited"
says out "stopped by slurm at its time limit (TIMEOUT" "with the reason"
run stats --json
json "$dir/out" "the loop was not held up by the engine" "d['loop']['max_busy_ms'] < 5"
finish
