#!/bin/sh
# postrider model: show, verify, diff.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
data=$dir/runs.csv
a=$dir/a.model b=$dir/b.model
make_table "$data" 1 1
SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH
if ! { "$postrider" train "$data" -o "$a" --model forest --set trees=20 -q &&
	"$postrider" train "$data" -o "$b" --model forest --set trees=30,depth=4 --seed 2 -q; } 2>"$dir/err"; then
	not_ok "there are models to look at" "$(last_words)"
	finish
fi

# ---- show ----
expect 0 "show" model show "$a"
for word in forest trees=20 runs.csv 2023-11-14T22:13:20Z "64, 128, 256, 512" lenet5 time_s accuracy; do
	says out "$word" "show says $word"
done
expect 0 "show -v" model show "$a" -v
expect 0 "show --json" model show "$a" --json
json "$dir/out" "show --json: where it comes from" \
	"d['seed'] == 1 and d['data']['rows'] == 96 and len(d['data']['fingerprint']) == 16 and
	 d['created'] == '2023-11-14T22:13:20Z' and d['program'].startswith('postrider ')"
json "$dir/out" "show --json: models and features" \
	"d['time']['name'] == 'forest' and d['time']['settings']['trees'] == 20 and
	 d['accuracy']['scores']['mse'] > 0 and d['candidates'] == [64, 128, 256, 512] and
	 'batch' in [f['name'] for f in d['features']] and d['schema']['decision'] == 'batch'"
expect 0 "a model that errs by a factor" train "$data" -o "$dir/h.model" --model hybrid --set trees=20 -q
expect 0 "show of it" model show "$dir/h.model"
says out "times the expected time" "show says how wide bounds are"
says out "a new family" "show says where they are wider"
expect 0 "show --json of it" model show "$dir/h.model" --json
json "$dir/out" "show --json: the less the table knows, the wider the bounds" \
	"1 <= d['time']['bounds']['same_setting'] <= d['time']['bounds']['new_setting'] <=
	 d['time']['bounds']['new_context'] <= d['time']['bounds']['new_family'] and
	 d['time']['bounds']['outside']['batch'] >= d['time']['bounds']['new_setting'] and
	 d['time']['bounds']['outside']['cpus'] >= d['time']['bounds']['new_context'] and
	 d['time']['bounds']['confidence'] == 0.9 and 'network' not in d['time']['bounds']['outside']"
expect 0 "show -o" model show "$a" -o "$dir/shown"
silent out "show -o: nothing on stdout"

# ---- verify ----
expect 0 "verify of whole files" model verify "$a" "$b"
that "verify: a line a file" test "$(grep -c ': ok' "$dir/out")" -eq 2
printf 'not a model' >"$dir/short"
: >"$dir/empty"
size=$(wc -c <"$a")
for file in short empty; do
	expect 6 "verify refuses: $file" model verify "$dir/$file"
	says err "$dir/$file" "verify names: $file"
done
for part in 1 10 50 90 99; do
	head -c $((size * part / 100)) "$a" >"$dir/cut"
	run model verify "$dir/cut"
	code_is 6 "verify refuses a file cut at $part %"
done
flip() { # offset: a copy with one byte changed
	{ head -c "$1" "$a"; printf '\377'; tail -c +$(($1 + 2)) "$a"; } >"$dir/flipped"
}
refused=0 tried=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
	flip $((size * i / 20))
	cmp -s "$dir/flipped" "$a" && continue
	tried=$((tried + 1))
	"$postrider" model verify "$dir/flipped" >"$dir/out" 2>"$dir/err"
	[ $? -eq 6 ] && refused=$((refused + 1))
done
that "verify refuses every one of $tried files with a changed byte" test "$refused" -eq "$tried"
expect 6 "verify of good and bad" model verify "$a" "$dir/short" "$b"
that "verify of good and bad goes on after the bad one" test "$(grep -c ': ok' "$dir/out")" -eq 2
expect 4 "verify of a missing file" model verify "$dir/nowhere"
expect 6 "verify of a folder" model verify "$dir"
expect 6 "verify --json" model verify "$a" "$dir/short" --json
json "$dir/out" "verify --json: which and why" \
	"[m['ok'] for m in d['models']] == [True, False] and d['models'][1]['error'] and not d['ok']"

# ---- diff ----
expect 0 "diff of a model with itself" model diff "$a" "$a"
says out "no difference" "diff of a model with itself: none"
expect 0 "diff of two models" model diff "$a" "$b"
for word in time.set.trees time.set.depth time.mse seed; do
	says out "$word" "diff names $word"
done
that "diff leaves out what is equal" sh -c "! grep -q data.fingerprint '$dir/out'"
expect 0 "diff --json" model diff "$a" "$b" --json
json "$dir/out" "diff --json: values of both" \
	"not d['same'] and [(x['a'], x['b']) for x in d['differences'] if x['what'] == 'seed'] == [(1, 2)]"
cut -d, -f1-7 "$data" >"$dir/time.csv"
run train "$dir/time.csv" -o "$dir/time.model" --model tree -q
expect 0 "diff with a model of time alone" model diff "$a" "$dir/time.model"
says out "accuracy.model" "diff with a model of time alone: accuracy differs"

# ---- usage ----
expect 2 "no action" model
expect 2 "an unknown action" model shwo "$a"
says err "'show'" "an unknown action: the nearest is named"
expect 2 "show of two" model show "$a" "$b"
expect 2 "diff of one" model diff "$a"
expect 4 "show of a missing file" model show "$dir/nowhere"
finish
