#!/bin/sh
# postrider report: one page of a folder; bad folders; the page in a real browser where there is one.
. tests/cli/lib.sh
fixture=tests/report/fixture
cp -r "$fixture" "$dir/run"
rm -f "$dir/run/report.html"

expect 0 "a folder becomes a page" report "$dir/run"
says err "report.html" "where it went is said"
silent out "standard output stays clean"
that "the page is in the folder" test -s "$dir/run/report.html"
expect 0 "the page goes where -o says, quietly" report "$dir/run" -q -o "$dir/other.html"
silent err "quiet is quiet"
same "$dir/run/report.html" "$dir/other.html" "the same folder gives the same bytes"
expect 0 "the page goes to standard output" report "$dir/run" -o -
same "$dir/run/report.html" "$dir/out" "standard output has the same bytes"
expect 0 "a slash at the end of the folder" report "$dir/run/" -q

page=$dir/run/report.html
# shellcheck disable=SC2016 # $1 is the inner shell's
that "no script, nothing from outside" sh -c '! grep -qiE "<script|<link|@import|url\(| src=|href=\"[^d#]" "$1"' sh "$page"
# shellcheck disable=SC2016
that "light and dark, screen and print" sh -c 'grep -q "prefers-color-scheme:dark" "$1" && grep -q "@media print" "$1"' sh "$page"
for id in attainment tradeoff predicted residuals importances anova timeline calibration; do
	that "figure $id is there" grep -q "<figure id=\"$id\">" "$page"
	that "figure $id has its data" grep -q "<a download=\"$id.csv\" href=\"data:text/csv" "$page"
done

# Which policy should I use? The first sentence says so, with the numbers of compare.json and those of the baseline.
that "the page opens with the answer" \
	awk '/id="answer"/ { answer = NR } /id="summary"/ { exit !(answer && answer < NR) }' "$page"
that "and says how many rows the models learnt from" grep -q 'id="summary".*Models learnt from [1-9][0-9]* rows' "$page"
"$python" - "$fixture/compare.json" "$dir/clear" 2>/dev/null <<'END' || mkdir -p "$dir/clear"
import json, os, sys
d = json.load(open(sys.argv[1]))
os.mkdir(sys.argv[2])
for p in d["policies"]:
    if "accuracy_zero" in p.get("versus", {}):
        p["versus"]["accuracy_zero"].update(p=1e-6, p_holm=1e-6, low=0.1, high=0.3)
    if p["name"] == d["baseline"]:
        p["name"] = "fixed:96"
d["baseline"] = "fixed:96"
json.dump(d, open(os.path.join(sys.argv[2], "compare.json"), "w"))
END
if [ -e "$dir/clear/compare.json" ]; then
	expect 0 "a comparison with what is done today" report "$dir/clear" -q
	grep 'id="answer"' "$dir/clear/report.html" >"$dir/out"
	says out "Use postrider: it meets 77.1" "the answer names the policy, and what it does"
	says out "With fixed:96, which is what you do today, that is 54.3" "and what is done today"
	grep 'id="sure"' "$dir/clear/report.html" >"$dir/out"
	says out "between postrider and fixed:96 is hardly chance (p &lt; 0.0001)" "then how sure that is"
	that "the answer comes first, then how sure it is" \
		awk '/id="answer"/ { a = NR } /id="sure"/ { s = NR } /id="summary"/ { exit !(a && a < s && s < NR) }' "$dir/clear/report.html"
	# The same numbers from few jobs, where the test tells nothing.
	sed 's/"p_holm": 1e-06/"p_holm": 0.4/g; s/"p": 1e-06/"p": 0.4/g; s/"low": 0.1,/"low": -0.1,/g; s/"about": *"[^"]*"/"about": "70 jobs, drawn from 12 jobs over 60 s"/' "$dir/clear/compare.json" >"$dir/open.json"
	cp "$dir/clear/compare.json" "$dir/kept.json"
	mv "$dir/open.json" "$dir/clear/compare.json"
	expect 0 "a comparison that could be chance" report "$dir/clear" -q
	grep 'id="sure"' "$dir/clear/report.html" >"$dir/out"
	says out "could be chance: 12 jobs are few" "that is said in words"
	cp "$dir/kept.json" "$dir/clear/compare.json"
	sed 's/"name": "fixed:96"/"name": "fixed:best", "batch": 96/; s/"baseline": "fixed:96"/"baseline": "fixed:best"/' \
		"$dir/clear/compare.json" >"$dir/best.json" && mv "$dir/best.json" "$dir/clear/compare.json"
	expect 0 "a comparison with the best batch for all" report "$dir/clear" -q
	grep 'id="answer"' "$dir/clear/report.html" >"$dir/out"
	says out "With one batch for all jobs, as is done today (fixed:best: 96, the best on a pilot) that is 54.3" "which is named"
else
	skipped "the answer of a clear comparison" "needs $python"
fi

# Every number: the unit test compares all of them; here one by hand, from the file to the page.
value=$(tr ',' '\n' <"$fixture/compare.json" |
	awk '/"name": *"postrider"/ { mine = 1 } mine && /"attainment_all":/ { sub(/.*: */, ""); print; exit }')
that "a number of the table is that of compare.json" \
	grep -q "data-policy=\"postrider\" data-metric=\"attainment_all\" data-value=\"${value:-none}\"" "$page"

# ---- folders that are not what they should be ----
expect 4 "no such folder" report "$dir/nowhere"
says err "nowhere" "no such folder: it is named"
mkdir "$dir/empty"
expect 4 "a folder without compare.json" report "$dir/empty"
says err "compare.json" "the missing file is named"
mkdir "$dir/broken"
printf '{\n"policies": [}\n' >"$dir/broken/compare.json"
expect 6 "broken JSON" report "$dir/broken"
says err "compare.json:2:14" "broken JSON: line and column are named"
that "nothing is written after an error" test ! -e "$dir/broken/report.html"
cp "$fixture/compare.json" "$dir/broken/compare.json"
sed '3s/,met,/,lost,/; 3s/,missed,/,lost,/; 3s/,rejected,/,lost,/; 3s/,failed,/,lost,/' "$fixture/jobs.csv" >"$dir/broken/jobs.csv"
expect 6 "a job with an unknown outcome" report "$dir/broken"
says err "jobs.csv:3" "an unknown outcome: the line is named"
rm "$dir/broken/jobs.csv"
expect 0 "a folder with compare.json alone" report "$dir/broken" -q
that "what is missing is said in the page" grep -q "jobs.csv is not in the folder" "$dir/broken/report.html"
expect 2 "no folder given" report
expect 2 "two folders" report "$dir/run" "$dir/broken"
run report "$dir/run" -o "$dir/no/such/page.html"
that "a page that can not be written is an error" test "$code" -ne 0

# ---- in a browser ----
if sanitized; then
	echo "skipped - reports in a browser (the page is the same under a sanitizer)" >"$dir/browser"
elif ! BIN=$BIN tests/report/browser.sh >"$dir/browser" 2>"$dir/browser.err"; then
	grep -q '^not ok' "$dir/browser" || not_ok "the browser test runs" "$(tail -n 1 "$dir/browser.err" | cut -c 1-200)"
	failures=$((failures + 1))
fi
cat "$dir/browser"
# ---- the experiment of the paper ----
paper=$dir/paper
# One network and one copy of one replication of the table are enough for a page, in a quarter of the time.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR == 1 || ($at["network"] == "lenet5" && $at["replication"] == 1 && $at["copy"] == 1)' \
	configs/profiles/two-cores/runs.csv >"$dir/once.csv"
expect 0 "the paper's experiment" compare --paper --world "measured:$dir/once.csv" --jobs 20 -o "$paper" -q
expect 0 "its folder makes a page" report "$paper"
for what in "Figure 9: fulfilment" "Figure 9: accuracy" "Figure 10: error of the predicted time" "9928" "0.9861" \
	"Why the numbers differ" "figure10-accuracy.csv"; do
	that "the page has: $what" grep -qF "$what" "$paper/report.html"
done
that "nothing in it is not a number" sh -c '! grep -q "nan\|inf\b" "$1"' sh "$paper/report.html"
printf '{"kind":"paper","figure9":7}' >"$paper/paper.json"
expect 6 "a figure that is no list" report "$paper"
says err "paper.json: figure9: a list is expected" "a figure that is no list: said so"
printf '{"kind":"paper","figure9":[{"policy":"x","job":99}]}' >"$paper/paper.json"
expect 6 "a job that is none" report "$paper"
printf '{"kind":"other"}' >"$paper/paper.json"
expect 6 "a file of another kind" report "$paper"
finish
