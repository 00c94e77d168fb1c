#!/bin/sh
# Capacity and load come from the cluster: drained nodes, jobs of others, when Slurm expects them to end; on a real
# Slurm of three nodes.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_start
slots=100 cores=100 nap_max=600 more_config='"executor": "slurm",
 "engines": {"slurm": {"poll_s": 0.5, "look_s": 0.5, "time_factor": 1, "time_margin_s": 0}},'
foreign() { # CPUS MINUTES [OPTION...]: somebody else's job, which does nothing
	cpus=$1 minutes=$2
	shift 2
	printf '#!/bin/sh\nsleep 600\n' |
		sbatch --parsable --cpus-per-task="$cpus" --time="$minutes" --chdir=/ --output=/dev/null "$@"
}
runs() { [ "$(squeue -h -j "$1" -o %T 2>/dev/null)" = RUNNING ]; }

# ---- what there is before the daemon starts is known to its first job ----
wide=$(foreign 8 5)
within 20 runs "$wide"
cluster_daemon
cluster_says() { # EXPRESSION: of the member `cluster` of stats, called c, and of the queue, called q
	"$postrider" stats --json >"$dir/stats" &&
		"$python" -c "import json; d = json.load(open('$dir/stats')); c = d['cluster']; q = d['queue']
raise SystemExit(not ($1))"
}
that "the first look is made before the socket opens" \
	cluster_says "c['nodes'] == 2 and c['cpus'] == 16 and c['gpus'] == 2 and q['slots'] == 16"
that "with a job of somebody else" \
	cluster_says "c['others']['running'] == 1 and c['others']['cpus'] == 8 and 200 < c['others']['next_end_s'] <= 300"
run stats
says out "slurm: 2 nodes, 16 cpus, 0 of 2 GPUs in use" "stats say it to people"
says out "others run 1 jobs on 8 cpus, the next ends within" "and what others do"

# ---- another job fills the cluster: the next of ours waits for its end, as Slurm expects it ----
second=$(foreign 8 3)
that "a job that comes is seen" within 20 cluster_says "c['others']['cpus'] == 16"
id=$("$postrider" submit nap -q 2>>"$dir/err")
that "a job waits, and says that others have the cpus" \
	within 10 status_has "$id" "0 of 16 cpus are free (others of slurm have 16), it wants 1"
"$postrider" status "$id" --json >"$dir/out"
json "$dir/out" "its start is foreseen for the end that Slurm expects" "100 < d['estimate']['start_s'] <= 181"
that "it was not handed over" test -z "$(squeue -h -t all -o %k | grep postrider)"
expect 3 "nothing is promised that others leave no room for" submit nap --slo 60
run submit nap --slo 20m -q
promised=$(cat "$dir/out")
that "what can wait for their end is promised" test -n "$promised"
scancel "$second"
that "when the other job ends early, ours starts" within 30 is_state "$id" "done"
that "and the promise was kept" within 30 is_state "$promised" "done"
"$postrider" status "$promised" --json >"$dir/out"
json "$dir/out" "which its outcome says" "d['slo_outcome'] == 'met'"

# ---- nodes come and go ----
scontrol update NodeName=n2 State=DRAIN Reason=test
that "a drained node has no slots" within 20 cluster_says "c['nodes_away'] == 1 and q['slots'] == 8"
scontrol update NodeName=n1,n2 State=DRAIN Reason=test
id=$("$postrider" submit nap -q 2>>"$dir/err")
that "without a node a job waits here" within 20 status_has "$id" "cpus are free"
scontrol update NodeName=n1,n2 State=RESUME
that "and runs when they are back" within 30 is_state "$id" "done"

# ---- a controller that is away ----
kill "$controller"
wait "$controller" 2>/dev/null
that "what was known last is kept, and stats say that it is old" \
	within 60 cluster_says "c['error'] and c['cpus'] == 16"
controller_start
that "and is known anew" within 60 cluster_says "not c['error'] and c['age_s'] < 5"

# ---- not asked ----
sed -i 's/"look_s": 0.5/"look_s": 0/' "$dir/config.json"
run reload
"$postrider" stats --json >"$dir/out"
json "$dir/out" "with look_s 0 capacity is as configured" "'cluster' not in d and d['queue']['slots'] == 100"
finish
