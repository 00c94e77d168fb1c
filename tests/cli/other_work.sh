#!/bin/sh
# Other work on the machine is counted once: a job that needs the cpu is profiled beside two busy processes, and the
# daemon, beside the same two, gives bounds that are about as wide as without them. Processes are real; what else this
# machine does meanwhile is in the column, too, so only ratios are judged, and with slack. How far the others slow a job
# down is judged by a table that follows a law: the answer is the law at the load that the daemon saw, whatever it was.
. tests/cli/lib.sh

hogs=
clean_up() {
	# shellcheck disable=SC2086 # a list of processes is meant
	[ -z "$hogs" ] || kill -KILL $hogs 2>/dev/null # also one that was told to stop
	[ -z "${daemon_pid:-}" ] || { kill "$daemon_pid" && wait "$daemon_pid"; } 2>/dev/null
	rm -rf "$dir"
}
trap clean_up EXIT

if ! [ -r /proc/self/schedstat ] || ! [ -r /proc/stat ]; then
	skipped "other work is counted once" "this kernel does not tell what processes want of the cpus"
	finish
fi

cat >"$dir/job.sh" <<'E'
#!/bin/sh
# job.sh BATCH EPOCHS: spins, the longer the smaller the batch
exec awk -v b="$1" -v e="$2" 'BEGIN { n = e * 4000 / b * (1500 + 150 * b); for (i = 0; i < n; i++) s += i % 7
	printf "{\"accuracy\":%.4f}\n", 0.95 - 0.0003 * b }'
E
chmod +x "$dir/job.sh"
for i in 1 2; do
	setsid sh -c 'while :; do :; done' &
	hogs="$hogs $!"
done

# learn CLAIM ARGUMENT...: trains, and the busy processes rest meanwhile. It takes long, and is not what they are for.
learn() {
	claim=$1
	shift
	# shellcheck disable=SC2086 # a list of processes is meant
	kill -STOP $hogs
	expect 0 "$claim" train "$@"
	# shellcheck disable=SC2086
	kill -CONT $hogs
}

expect 0 "a profile beside two busy processes" profile --factor batch=16,64,128 --factor epochs=1,2,3 --factor njobs=1,2 \
	--factor cpus=1 --factor network=n --factor samples=4000 --max-spread 0 -o "$dir/runs.csv" -- \
	"$dir/job.sh" '{batch}' '{epochs}'
says out "Other work on the machine" "the summary says that it was not alone"
"$python" - "$dir/runs.csv" <<'E' >"$dir/least"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
load = sorted(float(r["other_load"]) for r in rows)
print(load[len(load) // 2])
E
that "the column has at least the two" awk 'NR == 1 && $1 > 1.2 { good = 1 } END { exit !good }' "$dir/least"
learn "a model learns with it" "$dir/runs.csv" --policy postrider --group network,cpus,njobs,batch,epochs \
	-o "$dir/m.model" -q

# start_daemon MODEL
start_daemon() {
	cat >"$dir/config.json" <<E
{"socket": "$dir/s", "state_dir": "$dir/state.$1", "model": "$dir/$1", "cores": 2, "slots": 2,
 "learning": {"adapt": false},
 "types": {"spin": {"argv": ["$dir/job.sh", "{batch}", "{epochs}"], "batches": [16, 64, 128],
  "params": {"network": {"kind": "word", "default": "n"}, "samples": {"kind": "integer", "default": 4000},
   "epochs": {"kind": "integer", "min": 1, "max": 9, "default": 2}}}}}
E
	"$BIN/postriderd" --config "$dir/config.json" >"$dir/daemon.log" 2>&1 </dev/null &
	daemon_pid=$!
	POSTRIDER_SOCKET=$dir/s
	export POSTRIDER_SOCKET
	tries=100
	while ! "$postrider" stats -q >/dev/null 2>&1 && [ $tries -gt 0 ]; do
		tries=$((tries - 1))
		sleep 0.1
	done
}
start_daemon m.model

: >"$dir/jobs"
for spec in 16:1 64:2 128:3 16:2 64:3 16:3 128:2; do
	run submit spin --set "epochs=${spec#*:}" --batches "${spec%:*}" --wait -q
	id=$(head -n 1 "$dir/out")
	"$postrider" explain "$id" --json >>"$dir/jobs" 2>"$dir/err"
done
"$python" - "$dir/jobs" <<'E' >"$dir/answer"
import json, sys
text, at, ratio, first = open(sys.argv[1]).read(), 0, [], None
decoder = json.JSONDecoder()
while at < len(text.rstrip()):
    v, at = decoder.raw_decode(text, at)
    while at < len(text) and text[at].isspace():
        at += 1
    d = v["decisions"][0]
    c = d["candidates"][d["chosen"]]
    ratio.append(c["upper_s"] / v["job"]["run_s"])
    first = first or d
ratio.sort()
print("median %.2f of %d, first with %.2f processes of others, x%.2f" %
      (ratio[len(ratio) // 2], len(ratio), first["other_load"], first["other_factor"]))
print("good" if len(ratio) == 7 and 0.6 < ratio[3] < 3.0 else "bad")
print("early" if first["other_load"] > 0.7 and first["other_factor"] > 0.0 else "late")
E
head -n 1 "$dir/answer"
that "bounds are about as long as the runs take" grep -q good "$dir/answer"
that "the first job after the start is told of the others" grep -q early "$dir/answer"
run explain "$id"
says out "other programs (" "explain says what others do"
expect 3 "what nobody could do is refused" submit spin --slo 10ms
says out "other programs (" "and the refusal says what others do"

# The law: a job computes on one of two cores, which all share evenly. Beside 2 processes it takes 1.5 times as long.
kill "$daemon_pid" && wait "$daemon_pid"
"$python" - <<'E' >"$dir/law.csv"
import random
random.seed(1)
print("network,cpus,njobs,batch,epochs,samples,time_s,accuracy,other_load")
for batch in (16, 64, 128):
    for epochs in (1, 2, 3):
        for load in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256):
            s = epochs * 4000 / batch * (0.0015 + 1.5e-4 * batch) * max(1, (1 + load) / 2)
            s *= random.lognormvariate(0, 0.01)
            print("n,1,1,%d,%d,4000,%.6f,%.4f,%d" % (batch, epochs, s, 0.95 - 3e-4 * batch, load))
E
learn "a model learns the law" "$dir/law.csv" --policy postrider --set cores=2 -o "$dir/law.model" -q
start_daemon law.model
run submit spin --set epochs=2 --batches 64 --wait -q
"$postrider" explain "$(head -n 1 "$dir/out")" --json >"$dir/job" 2>"$dir/err"
"$python" - "$dir/job" <<'E' >"$dir/answer"
import json, sys
d = json.load(open(sys.argv[1]))["decisions"][0]
alone = 2 * 4000 / 64 * (0.0015 + 1.5e-4 * 64)
slower = max(1, (1 + d["other_load"]) / 2)
said = d["candidates"][d["chosen"]]["time_s"]
near = lambda a, b: 0.85 < a / b < 1.15
print("beside %.2f processes %.3f s and x%.2f; the law has %.3f s and x%.2f" %
      (d["other_load"], said, d["other_factor"], alone * slower, slower))
print("once" if d["other_load"] > 1.2 and near(said, alone * slower) and near(d["other_factor"], slower) else "not")
E
head -n 1 "$dir/answer"
that "others slow a job down by the law, once" grep -qx once "$dir/answer"
finish
