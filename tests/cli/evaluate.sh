#!/bin/sh
# postrider evaluate: scores and bounds on a table the model has not seen.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
m=$dir/m
make_table "$dir/train.csv" 1 3
make_table "$dir/test.csv" 2 1
if ! "$postrider" train "$dir/train.csv" -o "$m" --model forest --set trees=50,depth=8 -q 2>"$dir/err"; then
	not_ok "there is a model to evaluate" "$(last_words)"
	finish
fi

expect 0 "a table is evaluated" evaluate "$m" "$dir/test.csv"
says out "time_s" "time is scored"
says out "accuracy" "accuracy is scored"
says out "90 % upper bound holds for" "the bound is checked"
silent err "nothing to complain of: stderr is empty"
expect 0 "the same as JSON" evaluate "$m" "$dir/test.csv" --json
json "$dir/out" "JSON: scores of both targets" \
	"d['rows'] == 96 and d['time']['scores']['mse'] > 0 and d['time']['scores']['r2'] > 0.8 and
	 0 < d['time']['scores']['mape'] < 0.3 and d['time']['scores']['mae'] > 0 and d['accuracy']['scores']"
json "$dir/out" "JSON: coverage is about what was asked for" "0.75 <= d['coverage'] <= 1"
json "$dir/out" "JSON: nothing is extrapolated" "d['extrapolated'] == 0 and d['confidence'] == 0.9"

expect 0 "the training table is evaluated" evaluate "$m" "$dir/train.csv"
says err "train.csv is the table that the model was trained on, so the scores are too good" "the training table: said so"
expect 0 "the same as JSON" evaluate "$m" "$dir/test.csv" --json

# The same scores by another road.
"$postrider" predict "$m" "$dir/test.csv" -o "$dir/p.csv" 2>/dev/null
ours=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) k[$i] = i; next }
	{ e = $k["time_s"] - $k["predicted_time_s"]; s += e * e; held += $k["time_s"] <= $k["upper_time_s"] }
	END { printf "abs(d[\"time\"][\"scores\"][\"mse\"] / %.15g - 1) < 1e-9 and abs(d[\"coverage\"] - %.15g) < 1e-9",
		s / (NR - 1), held / (NR - 1) }' "$dir/p.csv")
json "$dir/out" "MSE and coverage agree with the predictions of predict" "$ours"

expect 0 "by a column of numbers" evaluate "$m" "$dir/test.csv" --by batch --json
json "$dir/out" "by a column of numbers: in order of size, all rows" \
	"[g['value'] for g in d['by']['groups']] == ['64', '128', '256', '512'] and
	 sum(g['rows'] for g in d['by']['groups']) == d['rows']"
expect 0 "by a column of words" evaluate "$m" "$dir/test.csv" --by network
says out "simplenet" "by a column of words: a line each"
sed 's/cpus/cpu/' "$dir/test.csv" >"$dir/cpu.csv"
expect 0 "by a column under its other name" evaluate "$m" "$dir/cpu.csv" --by cpus
expect 2 "by a column that is not there" evaluate "$m" "$dir/test.csv" --by netwrk
says err "'network'" "by a column that is not there: the nearest is named"
run evaluate "$m" "$dir/test.csv" --confidence 50% --json
json "$dir/out" "a lower confidence covers less" "d['coverage'] < 0.9 and d['confidence'] == 0.5"
expect 0 "a confidence the model can not carry" evaluate "$m" "$dir/test.csv" --confidence 99.99% --json
says err "no upper bound to check" "a confidence the model can not carry: said so"
json "$dir/out" "a confidence the model can not carry: no coverage" "d['coverage'] is None"
expect 0 "--exclude leaves rows out" evaluate "$m" "$dir/test.csv" --exclude network=lenet5 --json
json "$dir/out" "--exclude: half the rows are left" "d['rows'] == 48"
cut -d, -f1-7 "$dir/test.csv" >"$dir/time.csv"
expect 0 "a table without accuracy" evaluate "$m" "$dir/time.csv" --json
json "$dir/out" "a table without accuracy: null" "d['accuracy'] is None"
expect 0 "the report goes to -o" evaluate "$m" "$dir/test.csv" -o "$dir/report"
silent out "the report goes to -o and not to stdout"
that "the report in the file is there" grep -q time_s "$dir/report"
expect 0 "actual against predicted is drawn" evaluate "$m" "$dir/test.csv" --plot "$dir/e.svg"
that "the picture is there" grep -q "Actual against predicted" "$dir/e.svg"
expect 1 "a picture in no folder" evaluate "$m" "$dir/test.csv" --plot "$dir/none/e.svg"
expect 2 "a picture to standard output" evaluate "$m" "$dir/test.csv" --plot -

cut -d, -f1-6 "$dir/test.csv" >"$dir/x.csv"
expect 6 "a table without times" evaluate "$m" "$dir/x.csv"
says err "time_s" "a table without times: what is missing is named"
expect 4 "a missing model" evaluate "$dir/nowhere" "$dir/test.csv"
expect 4 "a missing table" evaluate "$m" "$dir/nowhere.csv"
finish
