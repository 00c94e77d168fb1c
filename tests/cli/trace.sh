#!/bin/sh
# postrider trace: any kind of trace is checked, summed up, converted; a bad one is refused with its place.
. tests/cli/lib.sh

expect 0 "a trace is summed up" trace configs/traces/morning.csv
says out "10 jobs over 40 s, 2 tenants" "how many jobs, how long, how many tenants"
says out "9 jobs: 8 s, 12 s, 20 s, 25 s, 60 s" "the quartiles of the limits"
says out "0.2250 a second" "the rate of arrivals"
says out "1.900 a job on average, at most 4" "the cpus"
silent err "nothing to complain of: stderr is empty"
expect 0 "the same as JSON" trace configs/traces/morning.csv --json
json "$dir/out" "JSON: the same numbers" \
	"d['jobs'] == 10 and d['span_s'] == 40 and abs(d['arrivals_per_s'] - 0.225) < 1e-12 and d['kinds'] == 6 and
	 d['slo_s'] == {'jobs': 9, 'min': 8, 'q1': 12, 'median': 20, 'q3': 25, 'max': 60} and
	 d['cpus'] == {'mean': 1.9, 'max': 4} and d['best_effort'] == 2 and d['recurring'] == 2"
json "$dir/out" "JSON: tenants with weights" \
	"d['tenants'] == [{'name': 'research', 'weight': 2, 'jobs': 5}, {'name': 'product', 'weight': 1, 'jobs': 5}]"

print_of() { run trace "$@" --json; sed -n 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/p' "$dir/out"; }
for t in configs/traces/morning.csv configs/traces/times.jsonl configs/traces/small.swf gen:bursty,jobs=50; do
	name=$(basename "$t")
	expect 0 "$name becomes CSV" trace "$t" -q -o "$dir/t.csv"
	expect 0 "$name becomes JSON lines" trace "$dir/t.csv" -q -o "$dir/t.jsonl"
	that "$name is the same trace in all three" [ "$(print_of "$t")" = "$(print_of "$dir/t.jsonl")" ]
	expect 0 "$name and back to CSV" trace "$dir/t.jsonl" -q -o "$dir/u.csv"
	same "$dir/t.csv" "$dir/u.csv" "$name: the same bytes after the way there and back"
done
expect 0 "-o - is CSV on standard output" trace configs/traces/morning.csv -o - -q
says out "arrival_s,slo_s,cpus,id" "-o -: with a header"
"$postrider" trace - --json <configs/traces/morning.csv >"$dir/out" 2>"$dir/err"
json "$dir/out" "- is standard input" "d['jobs'] == 10 and d['name'] == 'standard input'"

expect 0 "a log in SWF" trace configs/traces/small.swf --map configs/traces/swf-map.json
says err "1 record left out: cancelled" "SWF: what is left out is said"
expect 0 "SWF quietly" trace configs/traces/small.swf -q --json
silent err "-q: no notes"
json "$dir/out" "SWF: the notes are in the JSON" "d['jobs'] == 9 and len(d['notices']) == 5"

expect 0 "a generated trace" trace gen:poisson,jobs=300 --seed 7 --json
cp "$dir/out" "$dir/seven"
run trace gen:poisson,jobs=300 --seed 7 --json
same "$dir/out" "$dir/seven" "the same seed, the same trace"
run trace gen:poisson,jobs=300 --seed 8 --json
that "another seed, another trace" sh -c "! cmp -s '$dir/out' '$dir/seven'"
expect 0 "jobs drawn from a trace" trace configs/traces/morning.csv --resample 40 --json
says out 'drawn from 10 jobs over 40 s' "jobs drawn from a trace: how many, and from what"

printf 'arrival_s,cpus\n0,1\n3,two\n' >"$dir/bad.csv"
expect 6 "a bad trace" trace "$dir/bad.csv"
says err "bad.csv:3: field cpus: 'two' is not a whole number from 1 to 65536" "a bad trace: line, field, reason"
printf 'arival_s\n0\n' >"$dir/bad.csv"
expect 6 "a trace without arrivals" trace "$dir/bad.csv"
says err "did you mean that by 'arival_s'?" "a trace without arrivals: the nearest is named"
printf '1 2 3\n' >"$dir/bad.swf"
expect 6 "a short line of SWF" trace "$dir/bad.swf"
says err "bad.swf:1: 3 fields" "a short line of SWF: where and why"
echo '{"tenants":1}' >"$dir/map.json"
expect 6 "a bad mapping" trace configs/traces/small.swf --map "$dir/map.json"
says err "did you mean 'tenant'?" "a bad mapping: the nearest is named"
echo nothing >"$dir/bad.db"
expect 6 "a file that is no database" trace --from-history "$dir/bad.db"
expect 4 "a missing trace" trace "$dir/nowhere.csv"
expect 4 "a missing history" trace --from-history "$dir/nowhere"
expect 2 "no trace at all" trace
expect 2 "two ways to say it" trace configs/traces/morning.csv --from-history "$dir"
expect 2 "an odd name for the output" trace configs/traces/morning.csv -o "$dir/x.txt"
expect 2 "-o and --json" trace configs/traces/morning.csv -o "$dir/x.csv" --json
expect 2 "a mapping for a CSV" trace configs/traces/morning.csv --map configs/traces/swf-map.json
expect 2 "a generator that is none" trace gen:poison
says err "did you mean 'poisson'?" "a generator that is none: the nearest is named"
expect 2 "a key that is none" trace gen:poisson,jbos=3
says err "did you mean 'jobs'?" "a key that is none: the nearest is named"

# The daemon's own history, while it runs and afterwards.
. tests/cli/daemon_lib.sh
submitted --slo 60
submitted --slo 60 --epochs 2..4
submitted --slo 0.001 --best-effort --batches 64,128
submitted --set nap=30 --slo 90
"$postrider" cancel -q "$id"
# A cancelled job ends first, and then it is written down.
# shellcheck disable=SC2317 # `tried` calls it
cancel_is_written() { run trace --from-history "$dir/state" --json && grep -q '1 cancelled job is left out' "$dir/out"; }
that "a cancelled job is left out" tried cancel_is_written
expect 0 "the history of a running daemon" trace --from-history "$dir/state" --json
json "$dir/out" "history: jobs, columns, what was left open" \
	"d['jobs'] == 3 and d['open_epochs'] == 1 and d['best_effort'] == 1 and d['types'] == ['nap'] and
	 'network' in d['columns'] and d['slo_s']['max'] == 60 and d['notices'] == ['1 cancelled job is left out']"
cp "$dir/out" "$dir/live"

# ---- the daemon's model is the default of a comparison with its history ----
history="compare --from-history $dir/state --policies naive,postrider --replications 2"
expect 0 "a comparison with the history" $history --world fluid --cluster cores=2,slots=4 --json
says err "the daemon's model, $dir/state/model" "the history: the daemon's model is used, and that is said"
json "$dir/out" "the history: JSON names the model" "d['model'] == '$dir/state/model'"
expect 0 "the daemon's model can be declined" $history --cluster cores=2,slots=4 \
	--world measured:configs/profiles/two-cores/runs.csv --model none --dry-run
says out "trained, as each policy wants it" "--model none: trained"
expect 0 "the history in the world of the model's own table" $history --cluster cores=2,slots=4 \
	--world measured:configs/profiles/two-cores/runs.csv --dry-run
says err "models are trained here, not the daemon's" "its own table: trained here, and that is said"
says out "trained, as each policy wants it" "its own table: the models are trained"
daemon_stop
expect 0 "the history without its daemon" trace "$dir/state/postrider.db" --json
that "the history is the same trace afterwards" [ "$(grep fingerprint "$dir/out")" = "$(grep fingerprint "$dir/live")" ]
that "reading leaves nothing behind" [ ! -e "$dir/state/postrider.db-wal" ]
finish
