#!/bin/sh
# postrider train: files in, model out, what is printed where, and the same again.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
data=$dir/runs.csv
make_table "$data" 1 1
# A sanitizer sees as much in the fifth tree as in the twentieth, and this model is trained some sixty times.
n_trees=20
! sanitized || n_trees=5
fixed="--model forest --set trees=$n_trees,depth=6"

# ---- a fixed model ----
expect 0 "a fixed model is trained" train "$data" -o "$dir/m" $fixed
that "the model file is there" test -s "$dir/m"
says out "forest" "the table names the model"
says out "MAPE %" "the table has its measures"
says out "importance" "importances are shown"
says out "batch" "importances name columns"
says out "Model written to $dir/m" "the last words say where the model is"
that "no temporary file is left" test "$(find "$dir" -name '.postrider-*' | wc -l)" -eq 0
cp "$dir/m" "$dir/first"
expect 0 "verify accepts what train wrote" model verify "$dir/m"

expect 0 "-q trains" train "$data" -o "$dir/m" $fixed -q
silent out "-q: nothing on stdout"
silent err "-q: nothing on stderr"
expect 0 "--dry-run trains" train "$data" -n $fixed
says out "no model was written" "--dry-run says that nothing was written"
expect 0 "--json trains" train "$data" -o "$dir/m" $fixed --json
json "$dir/out" "--json: chosen, models, scores" \
	"d['chosen']['name'] == 'forest' and d['models'][0]['settings']['trees'] == $n_trees and
	 d['models'][0]['scores']['mse'] > 0 and 0 < d['models'][0]['scores']['mape'] < 1 and
	 d['models'][0]['scores']['r2'] < 1"
json "$dir/out" "--json: importances by column sum to 1" \
	"abs(sum(d['importances'].values()) - 1) < 1e-9 and 'batch' in d['importances'] and
	 'network' in d['importances']"
json "$dir/out" "--json: accuracy has the same shape" \
	"d['accuracy']['chosen']['name'] == 'forest' and d['accuracy']['models'] and
	 d['accuracy']['importances']"
expect 0 "--verbose trains" train "$data" -o "$dir/m" $fixed -v
says err "threads" "--verbose says how long it took"

# ---- the same again ----
SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH
for threads in 1 2 8; do
	run train "$data" -o "$dir/t$threads" $fixed --threads $threads --seed 7 -q
	code_is 0 "trains on $threads threads"
done
same "$dir/t1" "$dir/t2" "1 and 2 threads write the same bytes"
same "$dir/t1" "$dir/t8" "1 and 8 threads write the same bytes"
run train "$data" -o "$dir/again" $fixed --seed 7 -q
same "$dir/t1" "$dir/again" "the same seed writes the same bytes again"
run train "$data" -o "$dir/other" $fixed --seed 8 -q
that "another seed writes another model" sh -c "! cmp -s '$dir/t1' '$dir/other'"
run model show "$dir/t1" --json
says out "2023-11-14T22:13:20Z" "SOURCE_DATE_EPOCH is the time of creation"
run train "$data" -o "$dir/t1" $fixed -q
SOURCE_DATE_EPOCH=yesterday
expect 2 "a SOURCE_DATE_EPOCH that is no number is refused" train "$data" -o "$dir/t1" $fixed -q
unset SOURCE_DATE_EPOCH

# ---- searching ----
cat >"$dir/grid.json" <<'END'
{"forest": {"trees": [5, 10], "depth": [3, 6]}, "ridge": {"alpha": [0.1, 1]}}
END
expect 0 "a grid is searched" train "$data" -o "$dir/m" --grid "$dir/grid.json"
that "one model is marked for each target" test "$(grep -c '^\* ' "$dir/out")" -eq 2
that "one line a family for each target" test "$(grep -cE '^[* ] +(forest|ridge)' "$dir/out")" -eq 4
expect 0 "a grid is searched with -v" train "$data" -o "$dir/m" --grid "$dir/grid.json" -v
that "-v: a line for each setting" test "$(grep -cE '^[* ] +(forest|ridge)' "$dir/out")" -eq 12
expect 0 "a grid is searched with --json" train "$data" -o "$dir/m" --grid "$dir/grid.json" --json
json "$dir/out" "--json: every point of the grid, the best one chosen" \
	"len(d['models']) == 6 and d['chosen']['scores']['log_mse'] == min(m['scores']['log_mse'] for m in d['models'] if m['scores']['log_mse'])"
echo '{"time": {"ridge": {"alpha": [1]}}, "accuracy": {"tree": {"depth": [3]}}}' >"$dir/two.json"
expect 0 "a grid for each target" train "$data" -o "$dir/m" --grid "$dir/two.json" --json
json "$dir/out" "a grid for each target is kept apart" \
	"d['chosen']['name'] == 'ridge' and d['accuracy']['chosen']['name'] == 'tree'"
echo '{"forst": {"trees": [5]}}' >"$dir/bad.json"
expect 6 "a grid with an unknown model is an invalid file" train "$data" -o "$dir/m" --grid "$dir/bad.json"
says err "forest" "a grid with an unknown model: the nearest one is named"
echo '{"forest": {"trees": [5],}}' >"$dir/bad.json"
expect 6 "a grid that is no JSON is an invalid file" train "$data" -o "$dir/m" --grid "$dir/bad.json"
says err "bad.json:1:" "a grid that is no JSON: file and line"
for grid in configs/grids/*.json; do
	# A check that costs nothing: the grid is read, then there is nothing to hold out.
	run train "$data" -n --grid "$grid" --split extrapolate:batch:99999
	says err "holds out no row" "$grid is a valid grid"
done

# ---- splits and groups ----
for split in kfold:3 holdout:3:0.25 interpolate:batch extrapolate:njobs extrapolate:cpus:2; do
	expect 0 "--split $split" train "$data" -n --model tree --split $split
done
expect 0 "--group and leave-group" train "$data" -n --model tree --group network,batch --split leave-group
for split in kfold:1 kfold:x holdout:3:1.5 extrapolate extrapolate:cpu:a sideways kfold:3:4; do
	expect 2 "--split $split is refused" train "$data" -n --model tree --split $split
done
expect 2 "--split by a column that is not there is refused" train "$data" -n --model tree --split interpolate:bach
says err "'batch'" "--split by a column that is not there: the nearest is named"
expect 2 "--group by a column that is not there is refused" train "$data" -n --model tree --group network,bach
make_table "$dir/rep.csv" 1 3
run train "$dir/rep.csv" -n --model tree --group network,cpus,njobs,batch
if grep -q 'both sides' "$dir/err"; then
	not_ok "grouped replicates do not leak" "$(last_words)"
else
	ok "grouped replicates do not leak"
fi

# ---- what a table cannot teach ----
run train "$data" -n $fixed
cp "$dir/err" "$dir/of_any"
# told TABLE TEXT CLAIM: train says it of the table, and of $data it does not
told() {
	if grep -qF "$2" "$dir/of_any"; then
		not_ok "$3" "it is said of any table"
	fi
	run train "$1" -n $fixed
	says err "$2" "$3"
}
awk -F, -v OFS=, 'NR == 3 || NR == 9 { $4 = "" } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "2 of 96 rows have no batch" "rows without a batch are counted"
awk -F, -v OFS=, 'NR > 1 { $4 = 64 } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "the table has one batch only: there is nothing to choose" "one batch"
awk -F, -v OFS=, 'NR > 1 { $8 = 0.9 } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "all accuracies are equal: there is nothing to choose but the fastest batch" "constant accuracy"
awk -F, -v OFS=, 'NR > 1 { $7 = 1 + NR * 7919 % 101 } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "the model of time is worse than the mean of the table" "a model worse than the mean"
awk -F, -v OFS=, 'NR > 1 { $8 = "" } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "no accuracy to learn from" "a table whose accuracies are all missing"
that "missing accuracies are not equal ones" sh -c "! grep -q 'all accuracies are equal' '$dir/err'"
awk -F, -v OFS=, 'NR > 1 { $8 = NR % 3 ? 0.9 : "" } { print }' "$data" >"$dir/odd.csv"
told "$dir/odd.csv" "all accuracies are equal" "constant accuracy, some of it missing, the first one too"
head -n 2 "$data" >"$dir/odd.csv"
expect 0 "a table of one row" train "$dir/odd.csv" -o "$dir/one.model" --policy postrider
says err "no scores" "a table of one row: no scores, and that is said"
says err "how far off it is was assumed" "a table of one row: what its bounds rest on is said"
job=$(awk -F, 'NR == 2 { printf "network=%s,cpus=%s,njobs=%s", $1, $2, $3 }' "$data")
expect 0 "a table of one row promises a run again" predict "$dir/one.model" --slo 24h --job "$job"
expect 3 "a table of one row promises nothing at 99 %" predict "$dir/one.model" --slo 24h --confidence 99% --job "$job"
says err "the model has 3 independent test errors and needs 33" "a table of one row: what is missing is told"

# ---- usage ----
expect 2 "no output file is a usage error" train "$data"
says err "-o MODEL" "no output file: what to add"
expect 2 "--set without --model or --policy is a usage error" train "$data" -n --set trees=5
expect 2 "--grid with --model is a usage error" train "$data" -n --model forest --grid "$dir/grid.json"
expect 2 "an unknown model is a usage error" train "$data" -n --model forrest
says err "'forest'" "an unknown model: the nearest one is named"
expect 2 "an unknown setting is a usage error" train "$data" -n --model forest --set tres=5
says err "'trees'" "an unknown setting: the nearest one is named"
expect 2 "a setting out of range is a usage error" train "$data" -n --model forest --set trees=0
expect 2 "a setting that is no number is a usage error" train "$data" -n --model forest --set trees=many
expect 2 "-o - with a report is a usage error" train "$data" -o - --model tree
"$postrider" train "$data" -o - --model tree -q >"$dir/piped" 2>"$dir/err"
expect 0 "-o - -q writes the model to stdout" model verify "$dir/piped"

# ---- what a policy wants ----
# Under a sanitizer the forests of the paper are small ones: 2,000 trees are made as 20 are.
few='' trees=2000
! sanitized || few='--set trees=20' trees=20
expect 0 "--policy courier trains" train "$data" -n --policy courier --json $few
json "$dir/out" "--policy courier is the forest of Table 7" "d['chosen']['name'] == 'forest' and
	d['chosen']['settings']['trees'] == $trees and 'njobs' in d['permutation_importances'] and
	d['chosen']['settings']['depth'] == 6 and d['chosen']['settings']['criterion'] == 'absolute' and
	len(d['models']) == 1"
for pair in courier-tuned:forest postrider:hybrid boost-full:boost queueing:queueing anova:linear; do
	expect 0 "--policy ${pair%:*} trains" train "$data" -o "$dir/policy" --policy "${pair%:*}" --json
	json "$dir/out" "--policy ${pair%:*} is --model ${pair#*:}" \
		"d['chosen']['name'] == '${pair#*:}' and 'njobs' in d['permutation_importances']"
done
expect 0 "--policy boost trains" train "$data" -o "$dir/policy" --policy boost --json --group network,cpus,batch
json "$dir/out" "--policy boost knows nothing of the load" \
	"d['chosen']['name'] == 'boost' and 'batch' in d['permutation_importances'] and
	 not {'njobs', 'processes'} & (set(d['importances']) | set(d['permutation_importances']))"
silent err "--policy boost: the columns left out are no surprise"
expect 0 "--policy boost makes a model that loads" model verify "$dir/policy"
expect 0 "model show of it" model show "$dir/policy" --json
json "$dir/out" "--policy boost is boosting of Table 10, for accuracy too" \
	"d['time']['settings']['trees'] == 50 and d['time']['settings']['loss'] == 'absolute' and
	 d['accuracy']['name'] == 'boost' and d['accuracy']['settings']['trees'] == 50"
expect 2 "--policy with --model is a usage error" train "$data" -n --policy courier --model forest
expect 0 "--policy card trains" train "$data" -o "$dir/card" --policy card --json $few
json "$dir/out" "--policy card is the paper's forest on its open queue" "d['chosen']['name'] == 'hybrid' and
	d['chosen']['settings']['queue'] == 'paper' and d['chosen']['settings']['trees'] == $trees and
	d['chosen']['settings']['depth'] == 6 and d['chosen']['settings']['criterion'] == 'absolute' and
	len(d['models']) == 1"
expect 0 "model show of card" model show "$dir/card" --json
json "$dir/out" "--policy card: accuracy is the paper's forest" "d['accuracy']['name'] == 'forest' and
	d['accuracy']['settings']['trees'] == 150 and d['accuracy']['settings']['depth'] == 9"
run train configs/profiles/two-cores/runs.csv -o "$dir/card" --policy card --set trees=20 -q
expect 0 "card chooses among stable batches" predict "$dir/card" --slo 600 --json \
	--job network=lenet5,cpus=4,njobs=5,samples=12000,epochs=4
json "$dir/out" "an unstable disk makes a batch infeasible, and no other" \
	"[c['reasons'] == ['unstable'] for c in d['candidates']] == [False, False, True, True] and
	 all(c['feasible'] == (c['time_s'] is not None) for c in d['candidates'])"
expect 3 "every batch unstable: rejected" predict "$dir/card" --slo 600 \
	--job network=lenet5,cpus=4,njobs=20,samples=12000,epochs=4
says err "queue is unstable at this load" "every batch unstable: the reason is said"
expect 0 "--policy takes settings of its model" train "$data" -n --policy courier --set trees=5 --json
json "$dir/out" "and trains with them" "d['chosen']['name'] == 'forest' and d['chosen']['settings']['trees'] == 5"
expect 2 "an unknown policy is a usage error" train "$data" -n --policy curier
says err "'courier'" "an unknown policy: the nearest one is named"
expect 2 "a policy that wants no model is a usage error" train "$data" -n --policy naive
expect 4 "--policy boost and a missing schema" train "$data" -n --policy boost --schema "$dir/nowhere.json"

# ---- what the best is best by, levels held out at once, the learning curve ----
expect 0 "--select mape" train "$data" -n --select mape --json --grid configs/grids/paper.json --split holdout:1:0.3
json "$dir/out" "--select mape: the least MAPE is chosen" "d['selected_by'] == 'mape' and
	min(m['scores']['mape'] for m in d['models']) == [m for m in d['models']
		if m['settings'] == d['chosen']['settings']][0]['scores']['mape']"
expect 2 "--select of nothing" train "$data" -n --select best
p=configs/profiles/two-cores/runs.csv
expect 0 "settings held out, across nodes" train configs/profiles/four-nodes/runs.csv -n --model hybrid --group cpus,njobs,batch --json
json "$dir/out" "settings held out, across nodes: off by 10 % at most" "d['models'][0]['scores']['mape'] <= 0.1"
expect 0 "levels held out at once" train "$p" -n --model tree --split interpolate:batch:128,256
expect 1 "a level that is not there" train "$p" -n --model tree --split interpolate:batch:100
says err "batch has no level 100: its levels run from 64 to 512" "a level that is not there: said so"
expect 2 "a level that is no number" train "$p" -n --model tree --split interpolate:batch:x
expect 0 "a learning curve" train "$p" -n --model tree --learning-curve --plot "$dir/l.svg"
says out "With 172 of 216 runs the error on new settings is" "a learning curve: in words"
that "a learning curve: drawn" grep -q "How many runs are needed" "$dir/l.svg"
expect 0 "a learning curve for programs" train "$p" -n --model tree --learning-curve --json
json "$dir/out" "a learning curve: points" "len(d['learning_curve']['points']) > 5 and
	d['learning_curve']['points'][-1]['runs'] == 172"
expect 2 "--plot without a curve" train "$p" -n --model tree --plot "$dir/l.svg"

# ---- data that is not as it should be ----
expect 4 "a missing table" train "$dir/nowhere.csv" -n
says err "nowhere.csv" "a missing table is named"
expect 4 "a missing schema" train "$data" -n --schema "$dir/nowhere.json"
expect 4 "a missing grid" train "$data" -n --grid "$dir/nowhere.json"
expect 6 "a folder instead of a table" train "$dir" -n
: >"$dir/empty.csv"
expect 6 "an empty file" train "$dir/empty.csv" -n
head -n 1 "$data" >"$dir/header.csv"
expect 6 "a header without rows" train "$dir/header.csv" -n
printf '\211PNG\r\n\032\n\000\000\000\rIHDR' >"$dir/picture.csv"
expect 6 "a picture instead of a table" train "$dir/picture.csv" -n
says err "picture.csv" "a picture instead of a table is named"
sed 's/batch/bach/' "$data" >"$dir/column.csv"
expect 6 "a wrong column" train "$dir/column.csv" -n
says err "'batch'" "a wrong column: what is missing is named"
says err "'bach'" "a wrong column: what it may be is named"
sed '5s/,10,/,ten,/' "$data" >"$dir/text.csv"
expect 6 "text where a number must be" train "$dir/text.csv" -n
says err "text.csv:5: column epochs: 'ten'" "text where a number must be: file, line, column, text"
sed '4s/$/,1/' "$data" >"$dir/long.csv"
expect 6 "a row too long" train "$dir/long.csv" -n
says err "long.csv:4" "a row too long: file and line"
awk -F, -v OFS=, 'NR == 3 { $7 = -1 } { print }' "$data" >"$dir/negative.csv"
expect 6 "a negative time" train "$dir/negative.csv" -n
says err "negative.csv:3" "a negative time: file and line"
sed 's/$/\r/' "$data" >"$dir/crlf.csv"
printf '\357\273\277' | cat - "$data" >"$dir/bom.csv"
SOURCE_DATE_EPOCH=1
export SOURCE_DATE_EPOCH
for kind in crlf bom; do
	cp "$dir/$kind.csv" "$dir/x.csv"
	expect 0 "a table with $kind trains" train "$dir/x.csv" -o "$dir/$kind" $fixed -q
done
cp "$data" "$dir/x.csv"
run train "$dir/x.csv" -o "$dir/plain" $fixed -q
same "$dir/plain" "$dir/crlf" "CR LF makes no other model"
same "$dir/plain" "$dir/bom" "a byte-order mark makes no other model"
"$postrider" train - -o "$dir/stdin" $fixed -q <"$data" 2>"$dir/err"
expect 0 "a table from standard input trains" model verify "$dir/stdin"
unset SOURCE_DATE_EPOCH

# ---- rows and columns left out ----
awk -F, -v OFS=, 'NR == 1 { print $0, "suspect", "mood"; next } { print $0, NR % 7 ? "no" : "yes", "fair" }' \
	"$data" >"$dir/suspect.csv"
expect 0 "--exclude trains" train "$dir/suspect.csv" -n $fixed --exclude suspect=yes
says err "13 of 96 rows left out (suspect=yes)" "--exclude says how many rows and why"
says err "mood" "a column the schema does not know is noted"
expect 2 "--exclude of a column that is not there is refused" train "$dir/suspect.csv" -n $fixed \
	--exclude supect=yes
says err "'suspect'" "--exclude of a column that is not there: the nearest is named"
expect 2 "--exclude without a value is refused" train "$dir/suspect.csv" -n $fixed --exclude suspect
expect 0 "several --exclude of one column" train "$dir/suspect.csv" -o "$dir/m" $fixed --exclude suspect=yes \
	--exclude replication=9 --exclude suspect=maybe -q
expect 0 "several --exclude of one column make a model that loads" model verify "$dir/m"
expect 6 "all rows left out" train "$dir/suspect.csv" -n $fixed --exclude mood=fair
cut -d, -f1-7 "$data" >"$dir/time.csv"
expect 0 "a table without accuracy trains" train "$dir/time.csv" -o "$dir/time.model" $fixed
says err "time alone" "a table without accuracy: said so"
expect 0 "a table without accuracy trains with --json" train "$dir/time.csv" -n $fixed --json
json "$dir/out" "a table without accuracy: null in JSON" "d['accuracy'] is None and d['chosen']['name'] == 'forest'"
sed 's/cpus/cpu/' "$data" >"$dir/cpu.csv"
expect 0 "cpu is accepted for cpus" train "$dir/cpu.csv" -n $fixed

# ---- curves ----
awk -F, 'BEGIN { print "network,cpus,njobs,batch,epochs,replication,epoch,elapsed_s,accuracy" }
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ for (e = 1; e <= 10; e++)
		print $1 "," $2 "," $3 "," $4 "," $at["epochs"] "," $at["replication"] "," e "," \
			($at["time_s"] - 0.01) * e / 10 "," $at["accuracy"] * (1 - 0.5 / e) }' "$data" >"$dir/curves.csv"
expect 0 "--curves trains" train "$data" -o "$dir/curves.model" $fixed --curves "$dir/curves.csv" --json
says err "96 runs and their curves make 960 rows" "--curves: what became of the runs"
json "$dir/out" "--curves: the rows of a run count as one, every run is a residual, the accuracy model is a curve" \
	"d['rows'] == 96 and d['residuals'] == 96 and d['accuracy']['residuals'] == 96 and
	 d['accuracy']['chosen']['name'] == 'curve' and 'grouped by run' in d['scored_by']"
expect 0 "--curves makes a model that loads" model verify "$dir/curves.model"
expect 0 "a model of curves is asked" predict "$dir/curves.model" \
	--job network=lenet5,cpus=4,njobs=1,epochs=20 --slo 100h --json
json "$dir/out" "more epochs than were run are called extrapolated" \
	"all('extrapolated' in c['reasons'] for c in d['candidates'])"
expect 0 "fewer epochs than the runs had are known" predict "$dir/curves.model" \
	--job network=lenet5,cpus=4,njobs=1,epochs=3 --slo 100h --json
json "$dir/out" "fewer epochs than the runs had are not extrapolated" \
	"not any('extrapolated' in c['reasons'] for c in d['candidates'])"
expect 0 "--curves with groups that would cut runs" train "$data" -n --model tree --curves "$dir/curves.csv" \
	--group network,epochs
head -n 50 "$dir/curves.csv" >"$dir/some.csv"
sed -n '2,3s/^[a-z0-9]*/nowhere/p' "$dir/curves.csv" >>"$dir/some.csv"
expect 0 "curves of some runs" train "$data" -n --model tree --curves "$dir/some.csv"
says err "91 runs have no curve in $dir/some.csv and 1 have one that ends before" "curves of some runs: how many have none"
says err "2 rows of $dir/some.csv belong to no run" "curves of other runs: how many"
expect 4 "curves that are not there" train "$data" -n --model tree --curves "$dir/nowhere.csv"
expect 6 "curves without epochs" train "$data" -n --model tree --curves "$data"
says err "'epoch'" "curves without epochs: what is missing"

# ---- output that can not be written ----
expect 1 "an output folder that is not there" train "$data" -o "$dir/no/such/m" $fixed -q
says err "$dir/no/such/m" "an output folder that is not there is named"
expect 1 "an output that is a folder" train "$data" -o "$dir" $fixed -q
if [ -c /dev/full ]; then
	expect 1 "a full device" train "$data" -o /dev/full $fixed -q
	"$postrider" train "$data" -n $fixed >/dev/full 2>"$dir/err"
	code=$? ran="train -n >/dev/full"
	code_is 1 "a report that can not be written"
else
	skipped "a full device" "no /dev/full"
	skipped "a report that can not be written" "no /dev/full"
fi
cp "$dir/first" "$dir/kept"
(ulimit -f 1 && exec "$postrider" train "$data" -o "$dir/kept" --model forest --set trees=200 -q) >"$dir/out" 2>"$dir/err"
code=$? ran="train under ulimit -f 1"
code_is 1 "a file size limit is a failure that is told"
same "$dir/kept" "$dir/first" "a failed write leaves the old model as it was"
that "a failed write leaves no temporary file" test "$(find "$dir" -name '.postrider-*' | wc -l)" -eq 0

# ---- Ctrl-C ----
make_table "$dir/big.csv" 1 40
"$postrider" train "$dir/big.csv" -o "$dir/kept" --model forest --set trees=20000,criterion=absolute \
	>"$dir/out" 2>"$dir/err" </dev/null &
pid=$!
sleep 0.5
# A shell without job control starts background jobs with SIGINT ignored; SIGTERM shows the same.
kill -TERM $pid 2>/dev/null
wait $pid 2>/dev/null
code=$? ran="train, ended by a signal"
code_is 143 "training stops when told to"
same "$dir/kept" "$dir/first" "training that was stopped leaves the old model as it was"
that "training that was stopped leaves no temporary file" \
	test "$(find "$dir" -name '.postrider-*' | wc -l)" -eq 0
if command -v timeout >/dev/null; then
	timeout -s INT 0.5 "$postrider" train "$dir/big.csv" -o "$dir/kept" --model forest \
		--set trees=20000,criterion=absolute >"$dir/out" 2>"$dir/err" </dev/null
	says err "interrupted" "Ctrl-C is answered"
	same "$dir/kept" "$dir/first" "Ctrl-C leaves the old model as it was"
fi

# ---- a limit of time, and what it does meanwhile ----
cp "$dir/first" "$dir/kept"
expect 124 "--time-limit ends a long fit" train "$data" -o "$dir/kept" --model forest --time-limit 0.3 \
	--set trees=20000,criterion=absolute
says err "stopped after 300 ms, as --time-limit says; no model is written" "--time-limit says so"
same "$dir/kept" "$dir/first" "--time-limit leaves the old model as it was"
expect 0 "--time-limit that is long enough changes nothing" train "$data" -o "$dir/timely" $fixed --time-limit 10m
expect 2 "--time-limit needs a time" train "$data" -o "$dir/timely" --time-limit soon
if command -v script >/dev/null; then
	TERM=xterm script -qec "$postrider train $data -n --model forest --time-limit 1 --set trees=20000,criterion=absolute" \
		"$dir/screen" >"$dir/ignored" 2>&1 </dev/null
	that "on a terminal it says at once what it does" grep -qE 'rows that look wrong|time models|fit of time' "$dir/screen"
else
	skipped "progress on a terminal" "needs script(1)"
fi
finish
