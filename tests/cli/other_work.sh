#!/bin/sh
# Other work on the machine is counted once: a job that needs the cpu is profiled beside two busy processes, and the
# daemon, beside the same two, gives bounds that are about as wide as without them. Processes are real; what else this
# machine does meanwhile is in the column, too, so only ratios are judged, and with slack.
. tests/cli/lib.sh

hogs=
clean_up() {
	# shellcheck disable=SC2086 # a list of processes is meant
	[ -z "$hogs" ] || kill $hogs 2>/dev/null
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
expect 0 "a model learns with it" train "$dir/runs.csv" --policy postrider --group network,cpus,njobs,batch,epochs \
	-o "$dir/m.model" -q

cat >"$dir/config.json" <<E
{"socket": "$dir/s", "state_dir": "$dir/state", "model": "$dir/m.model", "cores": 2, "slots": 2,
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
says out "other work: " "explain says what others do"
expect 3 "what nobody could do is refused" submit spin --slo 10ms
says out "other work: " "and the refusal says what others do"
finish
