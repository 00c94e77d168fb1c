#!/bin/sh
# `postrider profile --executor slurm` on a real Slurm: a design with several copies at a time, load of others, a command that fails, one that
# takes too long, Ctrl-C, a kill -9, and going on where it stopped.
# shellcheck disable=SC2317,SC2154,SC2034,SC2016 # functions are called by others; variables are of the libraries, or of scripts
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_start
cat >"$dir/train.sh" <<'END'
# train.sh BATCH CPUS MARK: says where it ran, and takes longer with small batches
echo "$SLURM_JOB_ID $SLURM_CPUS_PER_TASK $(date +%s.%N)" >>"$3"
sleep "$(awk -v b="$1" 'BEGIN { print 0.3 + 20 / b }')"
echo "val_acc=0.$((99 - $1 / 16))"
END
printf '{"engines": {"slurm": {"poll_s": 0.3, "look_s": 0.3, "record_grace_s": 2, "time_margin_s": 60}}}\n' >"$dir/engine.json"
profile() { # ARGUMENT...
	run profile --executor slurm --config "$dir/engine.json" "$@"
}
none_left() { [ -z "$(squeue -h)" ]; }

# ---- a design ----
printf '#!/bin/sh\nsleep 60\n' | sbatch --cpus-per-task=3 --chdir=/ --output=/dev/null >"$dir/out"
other=$(sed 's/.* //' "$dir/out")
within 20 sh -c "squeue -h -j $other -o %T | grep -qx RUNNING"
profile --factor batch=32,128 --factor njobs=1,3 --factor cpus=2 --max-spread 0 -o "$dir/runs.csv" -- \
	sh "$dir/train.sh" '{batch}' '{cpus}' "$dir/marks"
code_is 0 "a design is run on the cluster"
that "each copy was a job of Slurm, with its cpus" sh -c "awk '{ print \$1, \$2 }' $dir/marks | sort -u | grep -c ' 2\$' | grep -qx 8"
cat >"$dir/check.py" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 8, len(rows)
for r in rows:
    want = 0.3 + 20 / float(r["batch"])
    assert r["status"] == "ok" and want <= float(r["time_s"]) < want + 3, r
    assert float(r["accuracy"]) == (0.97 if r["batch"] == "32" else 0.91), r
    assert float(r["other_load"]) == 3, r  # cpus of the job of somebody else
    assert float(r["max_rss_mb"]) > 0, r
END
that "times are those of the node, accuracies those of the output, other load the cpus of others" "$python" "$dir/check.py" "$dir/runs.csv"
that "the copies of a run started together" "$python" -c "
rows = [float(l.split()[2]) for l in open('$dir/marks')]
rows.sort()
# 8 starts: runs of 1, 1, 3 and 3 copies; the gaps within a run are short
gaps = sorted(b - a for a, b in zip(rows, rows[1:]))
assert gaps[3] < 0.9, gaps"
that "nothing is left behind" sh -c "none=\$(ls $dir/runs.csv.profile/jobs); test -z \"\$none\""
scancel "$other"
run profile --factor batch=32,128 --factor njobs=1,3 --factor cpus=2 --max-spread 0 -o "$dir/runs.csv" -- sh "$dir/train.sh" '{batch}' '{cpus}' "$dir/marks"
code_is 6 "runs of this machine do not go into the same table"
says err "executor was slurm and is none" "which the message says"

# ---- what goes wrong ----
profile --factor batch=32,64 -o "$dir/bad.csv" -- sh -c 'echo broken >&2; exit 7' sh '{batch}'
code_is 1 "a command that fails is a failed run"
that "with its exit code and its last words" grep -q 'copy 1 ended with exit code 7: broken' "$dir/bad.csv.profile/journal.jsonl"
profile --factor batch=32,64 --timeout 2s --tries 1 -o "$dir/slow.csv" -- sh -c 'sleep 60' sh '{batch}'
code_is 1 "a command that takes too long is stopped"
that "as a timeout" grep -q '"timeout"' "$dir/slow.csv.profile/journal.jsonl"
that "and its jobs are over" within 20 none_left
profile --factor batch=32,64 -o "$dir/none.csv" -- /nosuch/program '{batch}'
that "a program that is not there is said" grep -q 'could not be started: no such file: /nosuch/program' "$dir/none.csv.profile/journal.jsonl"
run profile --executor nosuch --factor batch=32,64 -o "$dir/x.csv" -- true '{batch}'
code_is 6 "an engine that is not there is refused"
printf '{"engines": {"slurm": {"partition": "nowhere"}}}\n' >"$dir/nowhere.json"
run profile --executor slurm --config "$dir/nowhere.json" --factor batch=32,64 -o "$dir/y.csv" -- true '{batch}'
code_is 1 "what Slurm refuses ends the campaign"
says err "slurm refused it: sbatch: error: invalid partition specified: nowhere" "with what it said"

# ---- interrupted, killed, resumed ----
# A shell makes what it starts in the background deaf to Ctrl-C.
listening='import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])'
start_long() { # the second setting takes a minute
	"$python" -c "$listening" "$postrider" profile --executor slurm --config "$dir/engine.json" --factor batch=32,64 --seed 1 -o "$dir/long.csv" -- \
		sh -c 'test -e '"$dir"'/quick || test ! -e '"$dir"'/first || sleep 60; touch '"$dir"'/first; echo val_acc=0.9' sh '{batch}' \
		>"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
}
one_done() { [ "$(wc -l <"$dir/long.csv.profile/journal.jsonl" 2>/dev/null || echo 0)" -ge 2 ]; }
one_runs() { [ "$(squeue -h -t RUNNING | wc -l)" -eq 1 ] && one_done; }
start_long
within 40 one_runs
kill -INT $pid
wait $pid
code=$? ran="profile, interrupted"
code_is 130 "Ctrl-C ends it"
says err "1 of 2 runs are saved" "and says what is saved"
that "its job is cancelled" within 20 none_left
start_long
within 40 one_runs
kill -9 $pid
wait $pid 2>/dev/null
that "a kill -9 leaves a job" test -n "$(squeue -h)"
touch "$dir/quick"
start_long
wait $pid
code=$? ran="profile, resumed"
code_is 0 "the same command goes on and ends"
that "and cancels what was left" within 20 none_left
that "with both runs" test "$(grep -c ,ok "$dir/long.csv")" = 2

# ---- automl: its experiments as jobs ----
awk 'BEGIN { srand(3); print "cores,size,time"
	for (i = 0; i < 40; i++) { c = 2 ^ int(5 * rand()); s = 1 + int(9 * rand()); printf "%d,%d,%.4f\n", c, s, 1 + 4 * s / c + 0.05 * rand() } }' >"$dir/table.csv"
cat >"$dir/c.ini" <<END
[General]
y = time
techniques = ['LRRidge', 'DecisionTree']
hp_selection = KFold
validation = HoldOut
folds = 3
hold_out_ratio = 0.2
run_num = 1
[DataPreparation]
input_path = table.csv
[LRRidge]
alpha = [0.01, 0.1, 1]
[DecisionTree]
max_depth = [3, 5, 10]
END
SOURCE_DATE_EPOCH=1790000000
export SOURCE_DATE_EPOCH
run automl "$dir/c.ini" -o "$dir/here" -q
before=$(squeue -h -t all | wc -l)
run automl "$dir/c.ini" -o "$dir/there" --executor slurm --config "$dir/engine.json" --parts 4
code_is 0 "a campaign of automl is spread over the cluster"
says err "18 parts were done before" "by the jobs"
that "as four jobs" test "$(($(squeue -h -t all | wc -l) - before))" = 4
that "which did the experiments" test "$(cat "$dir"/there/part-*/journal.jsonl | grep -c '"experiment"')" = 18
same "$dir/there/results.json" "$dir/here/results.json" "the results are those of one machine"
finish
