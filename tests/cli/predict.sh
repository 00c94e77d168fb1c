#!/bin/sh
# postrider predict: whole tables and single jobs.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
data=$dir/runs.csv
m=$dir/m
make_table "$data" 1 2
if ! "$postrider" train "$data" -o "$m" --model forest --set trees=50,depth=8 -q 2>"$dir/err"; then
	not_ok "there is a model to predict with" "$(last_words)"
	finish
fi

# ---- a table ----
expect 0 "a table is predicted" predict "$m" "$data" -o "$dir/p.csv"
silent out "with -o nothing is on stdout"
that "every row in is a row out" test "$(wc -l <"$dir/p.csv")" -eq "$(wc -l <"$data")"
that "the columns are appended" test "$(head -n 1 "$dir/p.csv")" = \
	"$(head -n 1 "$data"),predicted_time_s,upper_time_s,predicted_accuracy,extrapolated"
cut -d, -f1-9 "$dir/p.csv" >"$dir/p9.csv"
same "$dir/p9.csv" "$data" "the table's own columns are unchanged, in order"
column "$dir/p.csv" predicted_time_s >"$dir/mean"
column "$dir/p.csv" upper_time_s >"$dir/upper"
that "bounds lie above predictions" sh -c \
	"paste '$dir/mean' '$dir/upper' | awk '\$2 + 0 < \$1 + 0 { bad = 1 } END { exit bad }'"
column "$dir/p.csv" time_s | paste - "$dir/mean" |
	awk '{ e = ($1 - $2) / $1; s += e < 0 ? -e : e } END { exit !(s / NR < 0.15) }'
that "predictions of the training rows are near" test $? -eq 0
column "$dir/p.csv" extrapolated | sort -u >"$dir/flag"
that "no training row is extrapolated" test "$(cat "$dir/flag")" = 0
run predict "$m" "$data"
same "$dir/out" "$dir/p.csv" "without -o the same table is on stdout"
silent err "nothing to complain of: stderr is empty"
run predict "$m" "$dir/p.csv"
same "$dir/out" "$dir/p.csv" "predicting a predicted table replaces the predictions"
says err "replaced" "predicting a predicted table says so"
"$postrider" predict "$m" - <"$data" >"$dir/out" 2>"$dir/err"
same "$dir/out" "$dir/p.csv" "a table from standard input"
cut -d, -f1-6 "$data" >"$dir/x.csv"
expect 0 "a table without targets is predicted" predict "$m" "$dir/x.csv"
column "$dir/out" predicted_time_s >"$dir/mean2"
same "$dir/mean" "$dir/mean2" "a table without targets gets the same predictions"
awk -F, -v OFS=, 'NR == 2 { $4 = 4096 } NR == 3 { $1 = "resnet" } { print }' "$data" >"$dir/far.csv"
run predict "$m" "$dir/far.csv"
column "$dir/out" extrapolated | head -n 3 | tr '\n' ' ' >"$dir/flag"
that "rows outside the training table are marked" test "$(cat "$dir/flag")" = "1 1 0 "
run predict "$m" "$data" --confidence 0.5
column "$dir/out" upper_time_s | paste "$dir/upper" - | awk '$2 > $1 { bad = 1 } END { exit bad }'
that "a bound at 50 % is not above one at 90 %" test $? -eq 0
run predict "$m" "$data" --confidence 99.99%
says err "upper_time_s stays empty" "too few residuals: said so"
that "too few residuals: no bound is invented" test "$(column "$dir/out" upper_time_s | sort -u)" = ""
awk -F, -v OFS=, 'NR == 1 { print $0, "suspect"; next } { print $0, NR % 2 ? "no" : "yes" }' "$data" >"$dir/s.csv"
cat >"$dir/schema.json" <<'END'
{"columns": [{"name": "network", "kind": "category"}, {"name": "cpus", "kind": "number"},
	{"name": "njobs", "kind": "number"}, {"name": "batch", "kind": "number"}],
 "decision": "batch", "targets": {"time": "time_s"}, "exclude": {"suspect": "yes"}}
END
run train "$dir/s.csv" --schema "$dir/schema.json" -o "$dir/s.model" --model tree -q
expect 0 "a model under its own schema predicts" predict "$dir/s.model" "$dir/s.csv"
that "rows that training left out are predicted too" test "$(wc -l <"$dir/out")" -eq "$(wc -l <"$dir/s.csv")"
that "no model of accuracy: the column is empty" test "$(column "$dir/out" predicted_accuracy | sort -u)" = ""
says err "predicted_accuracy stays empty" "no model of accuracy: said so"
printf '"name, with comma",network,cpus,njobs,batch\n"say ""hi""",lenet5,1,1,64\n' >"$dir/quoted.csv"
run predict "$dir/s.model" "$dir/quoted.csv"
says out '"say ""hi""",lenet5,1,1,64,' "quotes survive"
says out '"name, with comma",network' "a comma in a header survives"

# ---- chances ----
awk -F, -v OFS=, 'NR == 1 { print $0, "limit"; next } { print $0, NR == 2 ? "" : NR == 3 ? 1e-3 : NR == 4 ? 1e9 : $7 }' \
	"$data" >"$dir/limits.csv"
that "the seventh column is the time" test "$(head -n 1 "$data" | cut -d, -f7)" = time_s
expect 0 "a table with a column of limits" predict "$m" "$dir/limits.csv" --slo-column limit -o "$dir/c.csv"
that "the chance is the last column" test "$(head -n 1 "$dir/c.csv")" = \
	"$(head -n 1 "$dir/limits.csv"),predicted_time_s,upper_time_s,predicted_accuracy,extrapolated,chance"
column "$dir/c.csv" chance >"$dir/chance"
that "no limit, no chance" test -z "$(head -n 1 "$dir/chance")"
that "no time and all the time" sh -c \
	"sed -n 2,3p '$dir/chance' | tr '\n' ' ' | awk '{ exit !(\$1 < 0.01 && \$2 > 0.99) }'"
that "chances lie in 0 to 1" awk 'NR > 1 && !($1 >= 0 && $1 <= 1) { bad = 1 } END { exit bad }' "$dir/chance"
sed 1,3d "$dir/chance" | awk '{ s += $1 } END { exit !(s / NR > 0.3 && s / NR < 0.7) }'
that "what a row took is within its distribution" test $? -eq 0
awk -F, -v OFS=, 'NR == FNR { u[FNR] = $1; next } { print $0, FNR == 1 ? "limit" : u[FNR - 1] }' \
	"$dir/upper" "$data" >"$dir/bounds.csv"
run predict "$m" "$dir/bounds.csv" --slo-column limit
column "$dir/out" chance | awk '!($1 >= 0.9 - 1e-9 && $1 < 0.93) { bad = 1 } END { exit bad }'
that "the chance to stay within the bound at 90 % is 90 %" test $? -eq 0
run predict "$m" "$dir/c.csv" --slo-column limit
same "$dir/out" "$dir/c.csv" "chances are replaced as predictions are"
expect 6 "a limit column that is not there" predict "$m" "$dir/limits.csv" --slo-column limt
says err "limits.csv: there is no column 'limt' for --slo-column; did you mean 'limit'?" "the near name is told"
awk -F, -v OFS=, 'NR == 6 { $10 = "soon" } { print }' "$dir/limits.csv" >"$dir/soon.csv"
expect 6 "a limit that is no number" predict "$m" "$dir/soon.csv" --slo-column limit
says err "soon.csv:6: column limit: 'soon' is not a number" "file, line and column are told"
expect 2 "a column of limits for one job" predict "$m" --job network=lenet5,cpus=4,njobs=3 --slo-column limit

make_table "$dir/large.csv" 5 60
run predict "$m" "$dir/large.csv" -o "$dir/large.out"
code_is 0 "a large table is predicted"
head -n 97 "$dir/large.csv" >"$dir/small.csv"
run predict "$m" "$dir/small.csv"
head -n 97 "$dir/large.out" >"$dir/large.head"
same "$dir/out" "$dir/large.head" "the look-up tables of large tables change no prediction"

# ---- one job ----
job="network=lenet5,cpus=4,njobs=3"
expect 0 "one job" predict "$m" --job $job,epochs=10,samples=60000
that "a line a candidate" test "$(grep -cE '^[* ] +(64|128|256|512) ' "$dir/out")" -eq 4
that "one is marked" test "$(grep -c '^\*' "$dir/out")" -eq 1
says out "decided   in" "the time of the decision is shown"
expect 0 "fields that never changed in training may be left out" predict "$m" --job $job
says err "taken from the training table, which has only one value: epochs=10, samples=60000" "fields taken from training are noted"
expect 0 "the time alone" predict "$m" --job $job --time-only -q
that "it is a value for sbatch --time" grep -qxE '[0-9]+-[0-9]{2}:[0-9]{2}:[0-9]{2}' "$dir/out"
run predict "$m" --job $job --json
cp "$dir/out" "$dir/whole.json"
run predict "$m" --job $job --time-only
if [ -x "$python" ]; then
	that "it is the bound of the choice, rounded up" "$python" -c "
import json, math, sys
d, h, m, s = open('$dir/out').read().replace('-', ':').split(':')
k = json.load(open('$dir/whole.json'))['chosen']
sys.exit(int(d) * 86400 + int(h) * 3600 + int(m) * 60 + int(s) != math.ceil(k['upper_s']))"
fi
expect 3 "no time where no batch is in time" predict "$m" --job $job --time-only --slo 1ms
silent out "and nothing is printed that a script could take for one"
expect 2 "the time alone of a table" predict "$m" "$dir/small.csv" --time-only
expect 0 "one job with a limit that can be met" predict "$m" --job $job --slo 2h --json
json "$dir/out" "JSON: chosen is feasible and the most accurate" \
	"d['chosen']['feasible'] and d['chosen']['accuracy'] == max(c['accuracy'] for c in d['candidates'])"
json "$dir/out" "JSON: candidates with times, bounds, reasons" \
	"[c['batch'] for c in d['candidates']] == [64, 128, 256, 512] and
	 all(c['upper_s'] >= c['time_s'] > 0 and isinstance(c['reasons'], list) for c in d['candidates'])"
json "$dir/out" "JSON: limit, confidence, headroom, decision time, model" \
	"d['slo_s'] == 7200 and d['confidence'] == 0.9 and d['decision_us'] > 0 and
	 abs(d['headroom_s'] - (7200 - d['chosen']['upper_s'])) < 1e-9 and d['model']['time'] == 'forest'"
silent_note=$(grep -c 'note:' "$dir/err")
that "notes stay out of the JSON" test "$silent_note" -gt 0
expect 3 "a number far outside the table is not promised" predict "$m" --job "$job,epochs=1000000000000000" --slo 2h
says err "epochs 1e+15 is too far outside the training table for a promise: the model goes from 10 to 10" \
	"the column and how far one may go are told"
run predict "$m" --job "$job,epochs=1000000000000000" --slo 2h --json
json "$dir/out" "no candidate has a bound, a chance or an offer" \
	"d['chosen'] is None and d['offer'] is None and d['smallest_slo_s'] is None and
	all(c['upper_s'] is None and c['chance'] is None and 'beyond_model' in c['reasons'] for c in d['candidates'])"
expect 3 "a limit that nothing can meet" predict "$m" --job $job --slo 1s
says err "the shortest limit that could be promised at 90 %:" "refused: the shortest limit is told"
says out "bound above the limit" "refused: the reason is told"
least=$(sed -n 's/.*promised at 90 %: \([0-9.]*\) s$/\1/p' "$dir/err")
expect 0 "the shortest limit that was told can be met" predict "$m" --job $job --slo "${least:-x}"
run predict "$m" --job $job --slo "$(awk -v s="${least:-0}" 'BEGIN { printf "%.3f", s * 0.99 }')"
says out "chance" "with a limit the chances are shown"
says err "without a promise: " "just refused: the chance without a promise is told"
below=$(awk -v s="${least:-0}" 'BEGIN { printf "%.3f", s * 0.99 }')
expect 3 "one percent less can not" predict "$m" --job $job --slo "$below"
expect 3 "a limit that nothing can meet, as JSON" predict "$m" --job $job --slo 1s --json
json "$dir/out" "refused in JSON: nothing chosen, the shortest limit" \
	"d['chosen'] is None and d['smallest_slo_s'] > 1 and d['headroom_s'] is None and
	 all('slo_exceeded' in c['reasons'] for c in d['candidates'])"
run predict "$m" --job $job --slo "$below" --json
json "$dir/out" "JSON: chances of all candidates, and the best of them times accuracy as an offer" \
	"all(0 <= c['chance'] < 0.9 for c in d['candidates']) and
	 d['offer']['chance'] * d['offer']['accuracy'] == max(c['chance'] * c['accuracy'] for c in d['candidates'])
	 and d['offer']['time_s'] > 0 and d['offer']['batch'] in [64, 128, 256, 512]"
run predict "$m" --job $job --slo 2h --json
json "$dir/out" "JSON: a feasible candidate has at least the chance of its confidence; no offer is needed" \
	"all(c['chance'] >= 0.9 for c in d['candidates'] if c['feasible']) and d['offer'] is None"
run predict "$m" --job $job --json
json "$dir/out" "JSON: no limit, no chance" "all(c['chance'] is None for c in d['candidates'])"
expect 3 "too few residuals for the confidence" predict "$m" --job $job --slo 2h --confidence 99.99%
says err "independent test errors and needs 3333" "too few residuals: how many there are, and are needed"
expect 0 "-q prints the chosen value" predict "$m" --job $job --slo 2h -q
that "-q prints it alone" test "$(cat "$dir/out")" = 64
silent err "-q: no talk"
expect 0 "90% and 0.9 are the same" predict "$m" --job $job --confidence 90% --json
json "$dir/out" "90% is 0.9" "d['confidence'] == 0.9"
expect 0 "candidates of one's own" predict "$m" --job $job --candidates 512,100,100 --json
json "$dir/out" "candidates of one's own: sorted, once each" "[c['batch'] for c in d['candidates']] == [100, 512]"
expect 0 "a job that fixes its batch" predict "$m" --job $job,batch=128 --json
json "$dir/out" "a job that fixes its batch has one candidate" "[c['batch'] for c in d['candidates']] == [128]"
expect 0 "a job outside the training table" predict "$m" --job network=resnet,cpus=64,njobs=3
says err "network=resnet is not in the training table" "an unknown category is noted"
says err "cpus=64 is outside the training table" "a value out of range is noted"
run predict "$m" --job network=lenet5,cpus=64,njobs=3
says out "cpus 64 is outside 1 to " "the table says which column is outside"
run predict "$m" --job network=lenet5,cpus=64,njobs=3 --json
json "$dir/out" "JSON: extrapolation is marked" "all(c['extrapolated'] for c in d['candidates'])"
expect 0 "the report goes to -o" predict "$m" --job $job --json -o "$dir/answer.json"
json "$dir/answer.json" "the report in the file is whole" "d['chosen']"

expect 2 "a job that lacks a field" predict "$m" --job network=lenet5,cpus=4
says err "njobs" "a job that lacks a field: it is named"
expect 2 "a job with an unknown field" predict "$m" --job $job,netwrk=x
says err "'network'" "a job with an unknown field: the nearest is named"
expect 2 "a job with text for a number" predict "$m" --job network=lenet5,cpus=four,njobs=1
expect 2 "a job without =" predict "$m" --job lenet5
expect 2 "neither table nor job" predict "$m"
expect 2 "both table and job" predict "$m" "$data" --job $job
expect 2 "a limit for a table" predict "$m" "$data" --slo 300
expect 2 "candidates that are no numbers" predict "$m" --job $job --candidates 64,big

# ---- times above 0 ----
{
	echo network,cpus,njobs,batch,time_s
	for batch in 16 32 64 128 256 512; do
		for cpus in 1 2 3 4; do
			echo "a,$cpus,1,$batch,$(awk -v b=$batch -v c=$cpus 'BEGIN { print 3000 / b / c / c }')"
		done
	done
} >"$dir/steep.csv"
for model in boost linear ridge lasso; do
	expect 0 "$model trains" train "$dir/steep.csv" -o "$dir/steep" --model $model -q
	expect 0 "$model predicts" predict "$dir/steep" "$dir/steep.csv" -q
	that "$model: every row has a time above 0" sh -c \
		"awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if (\$i == \"predicted_time_s\") c = i; next }
			!(\$c > 0) { bad = 1 } END { exit bad || NR != 25 }' '$dir/out'"
done
expect 0 "the paper's linear model may be had" train "$dir/steep.csv" -o "$dir/steep" --model ridge --set log=no -q
expect 0 "it predicts" predict "$dir/steep" "$dir/steep.csv"
says err "rows have no time: ridge says 0 or less for them" "it says for how many rows it has no time"
that "it prints no time of 0 or less" sh -c \
	"awk -F, 'NR > 1 && \$6 != \"\" && \$6 <= 0 { bad = 1 } NR > 1 && \$6 == \"\" { none++ }
		END { exit bad || !none }' '$dir/out'"

# ---- files ----
expect 4 "a missing model" predict "$dir/nowhere" "$data"
says err "nowhere" "a missing model is named"
expect 4 "a missing table" predict "$m" "$dir/nowhere.csv"
expect 6 "a table instead of a model" predict "$data" "$data"
expect 6 "a model instead of a table" predict "$m" "$m"
size=$(wc -c <"$m")
head -c $((size / 2)) "$m" >"$dir/half"
expect 6 "half a model" predict "$dir/half" "$data"
says err "$dir/half" "half a model is named"
expect 1 "an output folder that is not there" predict "$m" "$data" -o "$dir/no/such.csv"
finish
