#!/bin/sh
# postrider anova: which factors matter, as a table, as JSON and as a picture.
. tests/cli/lib.sh
t=$dir/t.csv
make_table "$t" 1 2

expect 0 "a table is analysed" anova "$t"
says out "time_s ~ network * cpus * njobs * batch" "the model is named"
says out "cpus:njobs" "interactions are tested"
says out "residual" "there is a residual"
says out "std. error" "coefficients have standard errors"
says out "192 runs of 96 settings, 2 of each" "replications are counted"
says out "lack of fit: F" "replications allow a test of the lack of fit"
silent err "nothing to complain of: stderr is empty"

expect 0 "the same as JSON" anova "$t" --json
json "$dir/out" "JSON: terms, coefficients, model, notes" \
	"len(d['terms']) == 15 and set(d['terms'][0]) == {'term', 'df', 'ss', 'ms', 'f', 'p', 'share'} and
	 set(d['coefficients'][0]) == {'term', 'estimate', 'se', 't', 'p', 'low', 'high'} and len(d['coefficients']) == 16 and
	 {'r2', 'adjusted_r2', 'f', 'p', 'n', 'residual_df', 'residual_sd'} <= set(d['model']) and d['notes'] == []"
json "$dir/out" "JSON: nothing is negative that must not be" \
	"all(t['ss'] >= 0 and t['f'] >= 0 and 0 <= t['p'] <= 1 and 0 <= t['share'] <= 1 for t in d['terms'])"
json "$dir/out" "JSON: degrees of freedom add up" \
	"sum(t['df'] for t in d['terms']) + d['residual']['df'] == d['total']['df'] == d['model']['n'] - 1"
run anova "$t" --json --as levels
json "$dir/out" "in a balanced design the sums of squares add up" \
	"abs(sum(t['ss'] for t in d['terms']) + d['residual']['ss'] - d['total']['ss']) < 1e-9 * d['total']['ss']"
json "$dir/out" "as levels: a term has the degrees of freedom of its levels" \
	"{t['term']: t['df'] for t in d['terms']}['cpus:batch'] == 9"

expect 0 "accuracy as target" anova "$t" --target accuracy --json
json "$dir/out" "accuracy as target: batch moves it" \
	"d['target'] == 'accuracy' and max(d['terms'], key=lambda t: t['ss'])['term'] == 'batch'"
expect 0 "any column as target, some columns as factors" anova "$t" --target replication --factors batch,cpus --json
json "$dir/out" "a balanced column that depends on nothing: nothing is significant" "min(t['p'] for t in d['terms']) > 0.9"
expect 0 "logarithm" anova "$t" --log --order 2 --json
json "$dir/out" "logarithm, order 2" "d['log'] and len(d['terms']) == 10 and d['model']['order'] == 2"
expect 0 "the 2^k design within a full factorial" anova "$t" --2k --json
json "$dir/out" "the 2^k design has 16 settings" "d['replications'] == {'settings': 16, 'min': 2, 'max': 2}"
says err "rows between the extremes left out" "the 2^k design: what is left out is said"
expect 0 "rows can be left out" anova "$t" --exclude network=lenet5 --json
json "$dir/out" "a factor that no longer varies is no factor" \
	"[f['name'] for f in d['factors']] == ['cpus', 'njobs', 'batch'] and d['model']['n'] == 96"
printf 'network,cpus,njobs,batch,time_s\na,1,1,64,9\na,2,1,64,7.5\na,1,1,128,6\na,2,1,128,5.1\n' >"$dir/few.csv"
expect 0 "few rows" anova "$dir/few.csv" --json
json "$dir/out" "few rows: every probability is one or null" \
	"all(t['p'] is None or 0 <= t['p'] <= 1 for t in d['terms']) and d['model']['order'] == 1 and
	 any('reduced' in n for n in d['notes'])"

# ---- pictures ----
expect 0 "a picture" anova "$t" --plot "$dir/p.svg"
says out "residual" "a picture comes beside the table"
# shellcheck disable=SC2016 # $1 is the inner shell's
that "a picture is an SVG without scripts" sh -c 'head -c 4 "$1" | grep -q "<svg" && ! grep -qi "<script" "$1"' sh "$dir/p.svg"
if [ -x "$python" ]; then
	that "a picture is well-formed XML" "$python" -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/p.svg"
else
	skipped "a picture is well-formed XML" "needs $python"
fi
sed 's/lenet5/<a \& b>/; s/simplenet/"say ""hi"""/' "$t" >"$dir/odd.csv"
expect 0 "odd names" anova "$dir/odd.csv" --plot "$dir/odd.svg" --json
json "$dir/out" "odd names come back in JSON" "any('<a & b>' in c['term'] or 'say \"hi\"' in c['term'] for c in d['coefficients'])"
if [ -x "$python" ]; then
	that "odd names are escaped" "$python" -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/odd.svg"
else
	skipped "odd names are escaped" "needs $python"
fi
expect 0 "the result can go to a file" anova "$t" -o "$dir/a.txt"
silent out "the result can go to a file: stdout is empty"
run anova "$t"
same "$dir/out" "$dir/a.txt" "the file holds what stdout would show"
"$postrider" anova - <"$t" >"$dir/b.txt" 2>/dev/null
same "$dir/out" "$dir/b.txt" "a table can come from standard input"
expect 0 "the picture alone on standard output" anova "$t" -o /dev/null --plot -
says out "<svg" "the picture alone on standard output: is one"

# ---- mistakes ----
expect 0 "help" anova --help
says out "--factors" "help lists the options"
expect 2 "no table" anova
says err "--help" "no table: the hint names the help"
expect 2 "an unknown option" anova "$t" --factor batch
says err "--factors" "an unknown option: the nearest is named"
expect 2 "an unknown way to take factors" anova "$t" --as words
expect 2 "an unknown factor" anova "$t" --factors batch,cpuz
says err "did you mean 'cpus'" "an unknown factor: the nearest is named"
expect 2 "a factor twice" anova "$t" --factors batch,batch
expect 2 "an empty name of a factor" anova "$t" --factors batch,,cpus
expect 2 "an unknown target" anova "$t" --target tine_s
expect 2 "the target as its own factor" anova "$t" --target batch --factors batch
expect 2 "table and picture both on standard output" anova "$t" --plot -
expect 2 "an order that is no number" anova "$t" --order two
expect 4 "a table that is not there" anova "$dir/none.csv"
expect 6 "a target of words" anova "$t" --target network
says err "is not a number" "a target of words: the line is named"
printf 'network,cpus,njobs,batch,time_s,score\na,1,1,64,9,0\nb,2,1,64,8,1\na,2,1,128,7,2\n' >"$dir/zero.csv"
expect 1 "no logarithm of zero" anova "$dir/zero.csv" --target score --log
says err "has no logarithm" "no logarithm of zero: said so"
printf 'network,cpus,njobs,batch,time_s\na,1,1,64,9\na,1,1,64,8\n' >"$dir/flat.csv"
expect 1 "nothing varies" anova "$dir/flat.csv"
expect 1 "a folder that is not there" anova "$t" --plot "$dir/none/p.svg"
expect 1 "a folder that is not there, for residuals" anova "$t" --residuals "$dir/none/p.svg"
expect 2 "residuals to standard output" anova "$t" --residuals -
p=configs/profiles/two-cores/runs.csv
expect 0 "residuals are drawn" anova "$p" --residuals "$dir/r.svg"
says out "216 runs of 72 settings, 3 of each; a run is the mean of its copies, 648 rows" "copies are no runs"
says out "add --log" "that a logarithm is needed is said"
grep -q "Spread against mean" "$dir/r.svg"
that "the picture has its panels" [ $? -eq 0 ]
expect 0 "across nodes" anova configs/profiles/four-nodes/runs.csv --json
json "$dir/out" "across nodes the batch explains at least 30 % of the time" "[t['share'] for t in d['terms'] if t['term'] == 'batch'][0] >= 0.3"
expect 0 "the 2^k r design" anova "$p" --2k --json
json "$dir/out" "effects at -1 and +1, with intervals" "d['signs'] and d['model']['n'] == 48 and
	all(f['as'] == 'signs' for f in d['factors']) and all(c['low'] < c['estimate'] < c['high'] for c in d['coefficients'])"
expect 0 "the 2^k r design in words" anova "$p" --2k
says out "-1 and +1 are network lenet5 and simplenet, cpus 1 and 4" "which level is which"
if [ -c /dev/full ]; then
	run anova "$t" -o /dev/full
	that "a full disk is a failure" [ "$code" -ne 0 ]
else
	skipped "a full disk is a failure" "no /dev/full"
fi

# ---- the published fits ----
c=../shared/data/courier-bigdl/fullfactorial_rep1.csv
if [ -r "$c" ]; then
	run anova "$c" --json
	json "$dir/out" "the Courier table: R2 0.705, F 12.742 on 15 and 80, as published" \
		"round(d['model']['r2'], 3) == 0.705 and round(d['model']['f'], 3) == 12.742 and d['model']['residual_df'] == 80"
	run anova "$c" --factors cpu,batch,njobs --json
	json "$dir/out" "the Courier table without the network: R2 0.695, F 28.659, as published" \
		"round(d['model']['r2'], 3) == 0.695 and round(d['model']['f'], 3) == 28.659"
else
	skipped "the Courier table: R2 and F as published" "no $c"
fi
finish
