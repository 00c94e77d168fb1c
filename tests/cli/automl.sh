#!/bin/sh
# postrider automl: campaigns from the command line, predictions, resuming after SIGKILL, agreement with scikit-learn.
# AUTOML_KILLS (12, with BARS 200, under a sanitizer 3) in the environment: how often campaigns are killed. Run from the
# root of the repository.
. tests/cli/lib.sh
SOURCE_DATE_EPOCH=1790000000
export SOURCE_DATE_EPOCH
examples=$PWD/../shared/data/amllibrary
out=$dir/results

# ---- a stranger's own table and campaign ----
awk 'BEGIN { srand(3); print "cores,size,kind,time"
	for (i = 0; i < 60; i++) { c = 2 ^ int(5 * rand()); s = 1 + int(9 * rand()); k = rand() < 0.5 ? "a" : "b"
		printf "%d,%d,%s,%.4f\n", c, s, k, 1 + 4 * s / c + (k == "a") + 0.05 * rand() } }' >"$dir/runs.csv"
cat >"$dir/c.ini" <<END
[General]
y = time
techniques = ['LRRidge', 'DecisionTree', 'RandomForest', 'SVR', 'Stepwise', 'Dummy']
hp_selection = KFold
validation = HoldOut
folds = 4
hold_out_ratio = 0.2
run_num = 2
[DataPreparation]
input_path = runs.csv
inverse = ['cores']
product_max_degree = 2
[LRRidge]
alpha = [0.01, 0.1, 1]
[DecisionTree]
max_depth = [3, 5, 10]
min_samples_leaf = [1, 0.1]
[RandomForest]
n_estimators = [50]
max_depth = [4, 8]
[SVR]
C = [0.1, 1]
epsilon = [0.1]
[Postrider]
learning_curve = True
END
expect 0 "a campaign runs" automl "$dir/c.ini" -o "$out"
says out "best by hp_selection" "the table names the best technique"
json "$out/results.json" "results.json has the documented members" \
	"all(set(('training','hp_selection','validation','name','settings')) <= set(t) for r in d['runs'] for t in r['techniques']) and d['runs'][0]['best'] and set(d['runs'][0]['techniques'][0]['validation']) == {'mape','rmse','r2'}"
json "$out/results.json" "the linear model finds the law" \
	"[t for t in d['techniques'] if t['name'] == 'LRRidge'][0]['validation']['mape'] < 0.05 and d['failed_experiments'] == 0"
json "$out/results.json" "the mean is worse than every model" \
	"all(t['validation']['mape'] < [m for m in d['techniques'] if m['name'] == 'Dummy'][0]['validation']['mape'] for t in d['techniques'] if t['name'] != 'Dummy')"
for f in LRRidge.model best.model report.html log.txt journal.jsonl; do
	that "the folder has $f" test -s "$out/$f"
done
says out "defaults" "a technique without settings says so"
that "the page has every chart for a desk and for a phone" \
	test "$(grep -c 'class="chart wide"' "$out/report.html") $(grep -c 'class="chart narrow"' "$out/report.html")" = "3 3"
cp "$out/results.json" "$dir/first.json"
expect 0 "the same command again is fine" automl "$dir/c.ini" -o "$out"
same "$out/results.json" "$dir/first.json" "and gives the same bytes"
expect 0 "with -v" automl "$dir/c.ini" -o "$out" -v
says out "if chosen by validation" "a second table follows the other rule"
"$python" - "$out/results.json" "$dir/out" "$out/report.html" >"$dir/second" 2>&1 <<'END'
import json, sys
results, table, page = (open(name).read() for name in sys.argv[1:])
for t in json.loads(results)["if_chosen_by_validation"]:
    share = "%.3g" % (100 * t["validation"]["mape"])
    line = [l for l in table.split("if chosen by validation")[1].splitlines() if l.startswith(t["name"])]
    row = [r for r in page.split("<details>")[1].split("</details>")[0].split("<tr>") if ">%s<" % t["name"] in r]
    assert len(line) == len(row) == 1 and share + " %" in line[0] and ">%s<" % share in row[0], (t["name"], share, line, row)
END
that "with the figures of results.json, and so has the page" test ! -s "$dir/second"
expect 0 "one thread" automl "$dir/c.ini" -o "$dir/one" --threads 1
same "$dir/one/results.json" "$dir/first.json" "threads do not change the result"
expect 0 "a dry run prints the prepared table" automl "$dir/c.ini" -n --prepared
says out "cores__kind_class_b" "with its products"

# ---- more made features than a table may have columns ----
awk 'BEGIN { srand(7); print "a,b,c,d,e,f,g,h,i,j,k,t"
	for (r = 0; r < 30; r++) { y = 1; for (c = 0; c < 11; c++) { x = 1 + int(9 * rand()); y += x; printf "%d,", x } print y } }' >"$dir/wide.csv"
cat >"$dir/wide.ini" <<END
[General]
y = t
techniques = ['DecisionTree', 'Dummy', 'LRRidge']
hp_selection = All
validation = HoldOut
hold_out_ratio = 0.2
[DataPreparation]
input_path = $dir/wide.csv
product_max_degree = inf
product_interactions_only = True
[FeatureSelection]
method = XGBoost
XGBoost_tolerance = 0.5
max_features = 5
[Postrider]
learning_curve = False
END
expect 0 "features are selected from 2,047" automl "$dir/wide.ini" -o "$dir/wide"
says out "2047 features" "and the table says how many there are"
sed '/FeatureSelection/,/max_features/d; s/, .LRRidge.//' "$dir/wide.ini" >"$dir/all.ini"
expect 0 "a tree takes all of them" automl "$dir/all.ini" -o "$dir/all"
expect 0 "and its file is read" predict "$dir/all/DecisionTree.model" "$dir/wide.csv" -o "$dir/wide.out"

# ---- mistakes ----
sed 's/inverse/inverze/' "$dir/c.ini" >"$dir/bad.ini"
expect 6 "an unknown key is refused" automl "$dir/bad.ini" -o "$dir/bad"
says err "bad.ini:11: [DataPreparation] inverze: there is no such key; did you mean 'inverse'" "with line and hint"
expect 0 "a lenient reader passes over it" automl "$dir/bad.ini" -o "$dir/bad" --lenient
says err "passed over" "and says so"
expect 2 "a campaign without -o is wrong usage" automl "$dir/c.ini"
expect 4 "a missing campaign" automl "$dir/none.ini" -o "$dir/none"
sed 's/runs.csv/nothing.csv/' "$dir/c.ini" >"$dir/bad.ini"
expect 4 "a missing table" automl "$dir/bad.ini" -o "$dir/none"
sed 's/0.01, 0.1, 1\]/0.02]/' "$dir/c.ini" >"$dir/changed.ini"
expect 6 "a changed campaign is refused" automl "$dir/changed.ini" -o "$out"
says err "[LRRidge] alpha was [0.01, 0.1, 1] and is now [0.02]" "and the key is named"
expect 0 "unless it begins anew" automl "$dir/changed.ini" -o "$out" --restart

# ---- prediction ----
printf 'cores,size,kind,time\n4,3,a,5\n8,2,a,3\n' >"$dir/new.csv"
expect 0 "a category that is missing in the new rows is fine" automl predict "$dir/one/LRRidge.model" "$dir/new.csv"
says out "real,pred" "real and predicted values are written"
says err "MAPE" "and the error"
that "predictions are near the law" awk -F, 'NR > 1 { bad += ($1 - $2) ^ 2 > 0.09 } END { exit bad > 0 || NR != 3 }' "$dir/out"
printf 'cores,size,kind,time\n4,3,c,5\n' >"$dir/new.csv"
expect 6 "an unknown category is an error" automl predict "$dir/one/best.model" "$dir/new.csv"
says err "new.csv:2: column kind: 'c' is a value that training did not have" "with its place"
expect 0 "postrider predict reads the same model" predict "$dir/one/best.model" "$dir/runs.csv" -o "$dir/p.csv"
that "and gives bounds" awk -F, 'NR == 2 { exit !($6 > $5) }' "$dir/p.csv"
expect 0 "model show explains it" model show "$dir/one/best.model"

# ---- SIGKILL at any moment ----
kills=${AUTOML_KILLS:-$([ -n "${BARS:-}" ] && echo 200 || { sanitized && echo 3 || echo 12; })}
cat >>"$dir/c.ini" <<END
[FeatureSelection]
method = SFS
max_features = 2
folds = 3
END
began=$(date +%s.%N)
run automl "$dir/c.ini" -o "$dir/calm"
code_is 0 "a longer campaign, undisturbed"
# The moments are spread over a third of the time that it takes, so that most campaigns are cut off several times. Every one that ends
# is compared, and the next one begins.
compare() { # FOLDER: adds to $bad
	for f in results.json log.txt report.html best.model LRRidge.model DecisionTree.model RandomForest.model SVR.model; do
		cmp -s "$dir/calm/$f" "$1/$f" || bad="$bad $f"
	done
	ended=$((ended + 1))
}
third=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { print (b - a) / 3 }')
killed=0 ended=0 tries=0 bad=
while [ "$killed" -lt "$kills" ] && [ "$tries" -lt $((20 * kills)) ]; do
	tries=$((tries + 1))
	"$postrider" automl "$dir/c.ini" -o "$dir/storm" -q >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	sleep "$(awk -v s="$tries" -v t="$third" 'BEGIN { srand(s); printf "%.3f", t * rand() }')"
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	case $? in
	137) killed=$((killed + 1)) ;;
	0) compare "$dir/storm" && rm -rf "$dir/storm" ;;
	*) bad="$bad $(last_words)" && break ;;
	esac
done
run automl "$dir/c.ini" -o "$dir/storm" -q
code_is 0 "after $kills kills the same command ends well"
compare "$dir/storm"
that "it was killed $kills times" test "$killed" -eq "$kills"
if [ -z "$bad" ]; then
	ok "and every file is the same to the byte (campaigns that ended: $ended)"
else
	not_ok "and every file is the same to the byte" "different:$bad"
fi

# ---- in parts ----
# Without what depends on the moment: the scores and the models are to be the same to the byte.
"$postrider" automl "$dir/c.ini" -o "$dir/whole" -q >"$dir/out" 2>"$dir/err"
mkdir "$dir/parts"
for k in 1 2 3; do
	expect 0 "part $k of 3 is run by itself" automl "$dir/c.ini" -o "$dir/parts/part-$k" --part $k/3 -q
done
that "a part has its share of the experiments" test "$(grep -c '"experiment"' "$dir/parts/part-2/journal.jsonl")" -lt \
	"$(grep -c '"experiment"' "$dir/whole/journal.jsonl")"
that "and no results" test ! -e "$dir/parts/part-2/results.json"
rm -r "$dir/parts/part-3" # a part that was never run is done here
expect 0 "a campaign takes over its parts" automl "$dir/c.ini" -o "$dir/parts" --parts 3 -v
same "$dir/parts/results.json" "$dir/whole/results.json" "in parts, and with one missing, the results are the same"
same "$dir/parts/best.model" "$dir/whole/best.model" "and the model"
expect 2 "a part that is none is a usage error" automl "$dir/c.ini" -o "$dir/x" --part 4/3
sed 's/folds = 4/folds = 3/' "$dir/c.ini" >"$dir/other.ini"
mkdir "$dir/mixed" && cp -r "$dir/parts/part-1" "$dir/mixed/"
expect 6 "a part of another campaign is refused" automl "$dir/other.ini" -o "$dir/mixed" --parts 1
says err "part-1/journal.jsonl belongs to another campaign" "and named"

# ---- the examples of aMLLibrary, unmodified ----
# name | technique | validation MAPE of the reference (of faas_test_hyperopt: with the best trial instead of its last one)
reference='faas_test|LRRidge|.000033|below
stepwise|Stepwise|.0222|.00005
simplest_example_1|LRRidge|.0123|.00005
ernest|LRRidge|.0595|.00005
simplest_example_3|LRRidge|.0923|below
faas_test_hyperopt|LRRidge|.0020|below'
if [ ! -r "$examples/faas_test.ini" ] || sanitized; then
	skipped "the examples of aMLLibrary run unmodified" "they are not here, or a sanitizer looks on and the results are judged without it"
	finish
fi
for name in faas_test faas_test_hyperopt stepwise simplest_example_1 simplest_example_3 ernest; do
	expect 0 "$name.ini runs unmodified" automl "$examples/$name.ini" -o "$dir/$name"
done
expect 0 "faas_predict.ini runs unmodified" automl predict "$dir/faas_test/best.model" "$examples/faas_predict.ini" --json
json "$dir/out" "1000 new rows are predicted to 0.02 %" "d['rows'] == 1000 and d['mape'] < 2e-4"
echo "$reference" >"$dir/reference"
while IFS='|' read -r name technique mape how; do
	if [ "$how" = below ]; then
		json "$dir/$name/results.json" "$name: validation MAPE not above the reference's $mape" \
			"[t for t in d['techniques'] if t['name'] == '$technique'][0]['validation']['mape'] <= $mape"
	else
		json "$dir/$name/results.json" "$name: validation MAPE is the reference's, $mape" \
			"abs([t for t in d['techniques'] if t['name'] == '$technique'][0]['validation']['mape'] - $mape) <= $how"
	fi
done <"$dir/reference"

# ---- agreement with scikit-learn ----
if ! "$python" -c 'import sklearn' 2>/dev/null; then
	skipped "techniques agree with scikit-learn to 1e-6" "$python has no scikit-learn: make bench-peers"
	finish
fi
if "$python" tests/bench/peers/automl_parity.py "$postrider" "$examples" "$dir/parity" >"$dir/log" 2>&1; then
	sed 's/^/ok - /' "$dir/log"
else
	not_ok "techniques agree with scikit-learn to 1e-6" "$(tail -n 1 "$dir/log")"
fi
finish
