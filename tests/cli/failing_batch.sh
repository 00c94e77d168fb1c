#!/bin/sh
# A batch that fails is promised at most once if the failure speaks of memory, at most twice otherwise: by the daemon of
# `run`, and by one with a configuration of its own. --retry takes the next smaller batch. A change of the command, and
# a user who names the batch, try it again.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home
unset POSTRIDER_CONFIG

if [ ! -x "$python" ]; then
	skipped "failing batches" "there is no $python"
	finish
fi

# It runs with any batch while it is measured. Afterwards it fails with those in the file "fails", with the words there.
cat >"$dir/w/net.py" <<'END_OF_SCRIPT'
import os, sys, time
batch = sys.argv[sys.argv.index("--bs") + 1]
if os.path.exists("fails"):
    words, *batches = open("fails").read().split("\n")
    if batch in batches:
        sys.exit(words)
time.sleep(0.01 + 0.02 * int(batch) / 256)
print("test accuracy: %.4f" % (0.8 + int(batch) / 2560), flush=True)
END_OF_SCRIPT

here() { # postrider in the folder of the script
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}
fails() { # WORDS BATCH...
	printf '%s\n' "$@" >"$dir/w/fails"
}
# promised BATCH CLAIM N: of the jobs in $dir/list.json N with this batch had a promise
promised() {
	json "$dir/list.json" "$2" "sum(j['batch'] == $1 and j['verdict'] == 'promised' and j['state'] == 'failed' for j in d['jobs']) == $3"
}

here init --yes --json --name net --factor batch=32,64,128,256 -- python3 net.py --bs '{batch}'
code_is 0 "init"
here profile net-postrider -q
code_is 0 "profile: every batch ends well"

# ---- the daemon of `run` ----

here run net-postrider --slo 5s
says err "batch      256" "before anything fails, the most accurate batch is 256"
fails "RuntimeError: CUDA out of memory." 256
n=0
while [ $n -lt 5 ]; do
	here run net-postrider --slo 5s
	n=$((n + 1))
done
code_is 0 "run: after five runs it ends well"
says err "batch      128" "run: with the next most accurate batch"
says err "left out   batch 256: runs with it failed" "run: and says what was left out"
POSTRIDER_CONFIG=$XDG_STATE_HOME/postrider/run/postrider.json "$postrider" list --json --all >"$dir/list.json"
promised 256 "run: a batch that is out of memory was promised once" 1
fails "something else" 256 128
n=0
while [ $n -lt 5 ]; do
	here run net-postrider --slo 5s
	n=$((n + 1))
done
code_is 0 "run: after five more it ends well"
says err "batch      64" "run: with a batch that works"
POSTRIDER_CONFIG=$XDG_STATE_HOME/postrider/run/postrider.json "$postrider" list --json --all >"$dir/list.json"
promised 128 "run: a batch that fails for another reason was promised twice" 2
stop_daemons
sleep 0.5
here run net-postrider --slo 5s
says err "batch      64" "run: a daemon that starts again knows it"
stop_daemons
rm "$dir/w/fails"

# ---- a configuration of one's own ----

POSTRIDER_CONFIG=$dir/own.json
export POSTRIDER_CONFIG
configure() { # WORD: one more word of the command
	sed "s/\"{batch}\"\]/\"{batch}\"$1]/" "$dir/w/net-postrider/job.json" >"$dir/own-job.json"
	cat >"$dir/own.json" <<END_OF_CONFIG
{"socket": "$dir/own.sock", "socket_mode": "0600", "state_dir": "$dir/own-state",
 "types": {"net": {"job": "$dir/own-job.json", "model": "$dir/w/net-postrider/job.model"}}}
END_OF_CONFIG
}
configure ""
"$BIN/postriderd" --config "$dir/own.json" >"$dir/own.log" 2>&1 &
n=0
until [ $n -ge 200 ] || "$postrider" types >/dev/null 2>&1; do
	n=$((n + 1))
	sleep 0.05
done
fails "RuntimeError: CUDA out of memory." 256
expect 0 "own: a dry run offers 256 at first" submit net --slo 5s --dry-run
says out "batch      256" "own: and would choose it"
n=0
while [ $n -lt 4 ]; do
	run submit net --slo 5s --wait
	n=$((n + 1))
done
code_is 0 "own: after four jobs one ends well"
says out "batch      128" "own: with the next most accurate batch"
"$postrider" list --json --all >"$dir/list.json"
promised 256 "own: a batch that is out of memory was promised once" 1
expect 0 "own: a dry run" submit net --slo 5s --dry-run
says out "batch      128" "own: agrees with the real thing"
run submit net --slo 5s --batches 256 --wait
says out "batch      256" "own: a batch that the user names is that batch"
fails "RuntimeError: CUDA out of memory." 256 128
run submit net --slo 5s --retry 2 --wait
code_is 0 "own: --retry ends well where the batch is out of memory"
"$postrider" list --json --all >"$dir/list.json"
json "$dir/list.json" "own: --retry took the next smaller batch" \
	"(lambda j: j['batch'] == 64 and j['attempt'] == 1 and j['state'] == 'done')(max(d['jobs'], key=lambda j: int(j['job'])))"
rm "$dir/w/fails"
configure ', "--again"'
expect 0 "own: reload with another command" reload
run submit net --slo 5s --wait
says out "batch      256" "own: after a change of the command it is tried again"
stop_daemons
finish
