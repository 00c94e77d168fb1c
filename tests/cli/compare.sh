#!/bin/sh
# postrider compare: policies side by side, sweeps, and the paper's experiment.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
trace=gen:poisson,jobs=60,gap=1.2
machine="--cluster cores=2,slots=4"
table=configs/profiles/two-cores/runs.csv
measured="--world measured:$table $machine"
quick="--policies fixed:64,naive,greedy-oracle --replications 4"

# ---- side by side ----
expect 0 "policies are compared" compare $trace $measured $quick
for name in fixed:64 naive greedy-oracle; do
	says out "$name" "there is a row for $name"
done
says out "4 replications" "how often is said"
says out "Against fixed:64" "one batch for all is the baseline"
says out "better," "wins are counted"
says out "p is corrected for 12 tests" "tests are corrected for their number, and that is said"
says out "worse," "losses are counted"
says out "learnt from" "how the table was parted is said"
cp "$dir/out" "$dir/text"
run compare $trace $measured $quick --threads 1 -q
same "$dir/out" "$dir/text" "other threads, the same text"
expect 0 "as JSON, into a folder" compare $trace $measured $quick --json -o "$dir/cmp" --baseline naive
same "$dir/out" "$dir/cmp/compare.json" "compare.json is what --json prints"
json "$dir/out" "JSON: what scripts rely on" \
	"[p['name'] for p in d['policies']] == ['fixed:64', 'naive', 'greedy-oracle'] and
	 all(k in p for p in d['policies'] for k in ('jobs', 'promised', 'met', 'attainment', 'attainment_ci', 'accuracy_met', 'regret'))"
json "$dir/out" "JSON: the baseline is not compared with itself" \
	"d['baseline'] == 'naive' and [('versus' in p) for p in d['policies']] == [True, False, True]"
json "$dir/out" "JSON: a corrected p is never below the single one" \
	"d['tests'] == 12 and d['note'] is None and sum(d['verdict']['greedy-oracle'].values()) == 6 and
	 all(v['p_holm'] is None or v['p'] <= v['p_holm'] <= 1 for p in d['policies'] for v in p.get('versus', {}).values())"
json "$dir/out" "JSON: regret is what the oracle has more" \
	"all(abs(p['regret'] - (d['policies'][2]['accuracy_zero'] - p['accuracy_zero'])) < 1e-9 for p in d['policies'])"
json "$dir/out" "JSON: every fold has its split" "len(d['world']['splits']) == 3"
that "jobs.csv has a row a job, policy and replication" test "$(wc -l <"$dir/cmp/jobs.csv")" -eq 721
expect 0 "one replication" compare $trace $measured --policies fixed:64,naive --replications 1
says out "One replication" "one replication: nothing is tested, and that is said"

# ---- the optimum ----
few_jobs="bursty,load=1,work=1000,cores=48,cpus=1|2|4|8,slo=normal:300:100,samples=60000,epochs=10"
bigdl="--world fluid:configs/worlds/bigdl.json"
expect 0 "the best schedule of six jobs" compare gen:$few_jobs,jobs=6 $bigdl --policies fixed:512,optimum --replications 3
says out "of the optimum's" "how much of the best a policy gets"
that "six jobs: it is exact" test -z "$(grep 'upper bound' "$dir/out")"
expect 0 "the bound of thirty" compare gen:$few_jobs,jobs=30 $bigdl --policies fixed:512,optimum --replications 3 --json -o "$dir/best"
json "$dir/out" "thirty jobs: a bound and nothing else" \
	"d['policies'][1]['of_optimum'] == 1 and d['policies'][1]['met'] is None and 0 < d['policies'][0]['of_optimum'] < 1"
that "a bound has no jobs" test "$(grep -c '^optimum,' "$dir/best/jobs.csv")" -eq 0
expect 0 "the report of a bound" report "$dir/best"
expect 2 "no optimum without a law of sharing" compare gen:$few_jobs,jobs=6 --world queueing:configs/worlds/bigdl.json --policies optimum
says err "no law by which jobs share" "and why"

# ---- the baseline ----
expect 0 "without a list of policies" compare $trace $measured -n
says out "fixed:best" "the best batch for all is among them"

# ---- models are trained ----
# A small table, so that training is short.
awk 'BEGIN { print "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication"
	for (r = 1; r <= 2; r++) for (c = 1; c <= 2; c++) for (j = 1; j <= 3; j += 2) for (b = 64; b <= 256; b *= 2)
		printf "lenet5,%d,%d,%d,4,12000,%.3f,%.4f,%d\n", c, j, b, 5 * (1 + 300 / b) * (1 + 0.2 * c * j) * (1 + 0.02 * r),
			0.95 - 2e-4 * b, r }' >"$dir/small.csv"
small="--world measured:$dir/small.csv --cluster cores=4"
expect 0 "policies that learn are trained" compare gen:poisson,jobs=30,gap=20,cpus=1\|2,network=lenet5,slo=60 \
	$small --policies courier,postrider,card,greedy-oracle --replications 2 --json
json "$dir/out" "trained: predictions have errors" \
	"all(p['mape'] is not None for p in d['policies'][:3]) and d['baseline'] == 'courier'"
json "$dir/out" "trained: importances of the forest" "sum(d['policies'][0]['importances'].values()) > 0.99"
expect 0 "in any order" compare gen:poisson,jobs=30,gap=20,cpus=1\|2,network=lenet5,slo=60 $small \
	--policies naive,fixed:64,courier --replications 2 --json
json "$dir/out" "a fixed batch is what the others are held against" "d['baseline'] == 'fixed:64'"

# ---- little data ----
few="compare gen:poisson,jobs=30,gap=20,cpus=1|2,network=lenet5,slo=60 $small --policies fixed:64,naive --replications 4"
expect 0 "24 rows are compared" $few
says out "no verdict: the table has 24 usable rows" "24 rows: no verdict, and why"
that "24 rows: nobody is called better" test -z "$(grep -E ' p |better,|worse,' "$dir/out")"
expect 0 "24 rows as JSON" $few --json -o "$dir/few"
json "$dir/out" "24 rows: figures, but no p and no verdict" \
	"d['verdict'] is None and 'no verdict' in d['note'] and d['tests'] == 0 and
	 all(v['p'] is None and v['low'] is None for v in d['policies'][1]['versus'].values()) and
	 d['policies'][1]['versus']['met']['difference'] is not None and d['policies'][1]['met'] is not None"
expect 0 "24 rows: the report" report "$dir/few" -o "$dir/few.html"
that "24 rows: the report says it" grep -q "no verdict: the table has 24 usable rows" "$dir/few.html"
that "24 rows: the report calls nobody best" sh -c "! grep -qE 'title=\"best\"|class=\"(win|loss)\"' '$dir/few.html'"
awk -F, 'NR == 1 || $NF == 1' "$dir/small.csv" >"$dir/one.csv"
awk -F, 'NR > 1 && $NF == 2 && n++ < 2' "$dir/small.csv" >>"$dir/one.csv"
expect 0 "replications of unlike size" compare gen:poisson,jobs=30,gap=20,cpus=1\|2,network=lenet5,slo=60 \
	--world "measured:$dir/one.csv" --cluster cores=4 --policies naive,greedy-oracle --replications 3 --json
json "$dir/out" "replications of unlike size: settings are dealt into folds" \
	"d['world']['split'] == 'settings' and len(d['world']['splits']) == 3 and
	 all('dealt into 3 folds' in s for s in d['world']['splits'])"

# ---- sweeps ----
expect 0 "a sweep" compare $trace $measured $quick --sweep slo.scale=0.2..1:3
says out "slo.scale" "a sweep: a row a value"
expect 0 "a sweep as JSON, into a folder" compare $trace $measured $quick --sweep slo.scale=0.2,0.6,1 --json -o "$dir/sw"
json "$dir/out" "a sweep: three points" \
	"d['sweep']['key'] == 'slo.scale' and [p['value'] for p in d['sweep']['points']] == [0.2, 0.6, 1]"
json "$dir/out" "a sweep: the object is the comparison in the middle" \
	"d['policies'] == d['sweep']['points'][1]['policies'] and d['kind'] == 'compare'"
json "$dir/out" "a sweep: a wider limit is met more often" \
	"[p['policies'][2]['met'] for p in d['sweep']['points']] == sorted(p['policies'][2]['met'] for p in d['sweep']['points'])"
json "$dir/sw/sweep.json" "sweep.json has the same points" "len(d['points']) == 3 and d['key'] == 'slo.scale'"
that "a sweep: the folder has the jobs of the middle" test "$(wc -l <"$dir/sw/jobs.csv")" -eq 721
run compare $trace $measured $quick --set slo.scale=0.6 --json
cp "$dir/out" "$dir/middle"
json "$dir/sw/compare.json" "a value of a sweep is what --set gives" \
	"d['policies'] == json.load(open('$dir/middle'))['policies']"
expect 0 "the folder of a sweep is used again" compare $trace $measured $quick -o "$dir/sw"
that "the folder of a sweep: its sweep is gone" test ! -e "$dir/sw/sweep.json"
expect 2 "a sweep of nothing" compare $trace $measured $quick --sweep slo.sclae=1..2
says err "'slo.scale'" "a sweep of nothing: the nearest is named"
expect 2 "a sweep and a setting of the same" compare $trace $measured $quick --sweep noise=0,0.1 --set noise=0.2
expect 0 "a capacity for each policy" compare $trace $measured --policies fixed:64,fixed:512 --replications 2 --capacity 50% --to 8 \
	--json -o "$dir/cap"
json "$dir/out" "a capacity for each policy: two answers" "[p['policy'] for p in d['policies']] == ['fixed:64', 'fixed:512']"
same "$dir/out" "$dir/cap/capacity.json" "capacity.json is what --json prints"

# ---- the paper ----
paper="compare --paper $small --jobs 60"
expect 0 "the paper's experiment" $paper -o "$dir/paper" --json
same "$dir/out" "$dir/paper/paper.json" "paper.json is what --json prints"
json "$dir/out" "the paper: five jobs of Table 9, as printed there" \
	"[t['paper']['batch'] for t in d['table9']] == [128, 128, 128, 128, 512] and
	 [t['njobs'] for t in d['table9']] == [5, 1, 1, 2, 3]"
json "$dir/out" "the paper: Table 11 has boosting with and without the load" \
	"{t['policy']: t['knows_load'] for t in d['table11']}['boost'] is False and
	 {t['policy']: t['knows_load'] for t in d['table11']}['boost-full'] is True"
json "$dir/out" "the paper: Figures 9 and 10" "len(d['figure9']) == 15 and len(d['figure10']) == 20"
json "$dir/out" "the paper: five jobs, then 60" "[e['jobs'] for e in d['experiments']] == [5, 60]"
json "$dir/out" "the paper: nobody beats the oracle" \
	"all(p['regret'] >= 0 and p['met'] <= e['policies'][-1]['met'] for e in d['experiments'] for p in e['policies'])"
that "paper_jobs.csv has a row a job and policy" test "$(wc -l <"$dir/paper/paper_jobs.csv")" -eq 521
expect 0 "the paper's experiment for people" $paper --threads 1
says out "Table 9" "the paper: Table 9"
says out "Table 11" "the paper: Table 11"
says out "Figure 9" "the paper: Figure 9"
says out "Figure 10" "the paper: Figure 10"
says out "below 45 %" "the paper: what five jobs can say"
says out "Against courier" "the paper: wins and losses"
expect 0 "the machine of a table may be left out" compare --paper --world "measured:$dir/small.csv" --jobs 60 --json
says err "the paper's is taken, cores=48" "the machine left out: what is taken is said"
json "$dir/out" "the machine left out: 48 cores" "d['world']['measured_on']['cores'] == 48"
expect 2 "--paper and a trace" compare $trace --paper
expect 2 "--paper and policies" compare --paper --policies courier
says err "--policies" "--paper and policies: what to leave out is named"
expect 2 "--jobs without --paper" compare $trace $measured $quick --jobs 5
expect 0 "--paper can be tried dry" compare --paper -n
says out "Nothing was run" "--paper, dry: said so"

# ---- policies that cannot run on the cluster ----
nodes="--world fluid --cluster cores=8,slots=16,nodes=4,place=promise"
expect 0 "the usual policies on nodes" compare $trace $nodes -n
says err "left out: policy greedy-oracle decides for one machine" "the usual policies on nodes: who is left out, and why"
that "the usual policies on nodes: the others are there" \
	grep -q "^policies      fixed:best, courier, postrider, naive, boost, boost-full, queueing$" "$dir/out"
expect 2 "an oracle that was named, on nodes" compare $trace $nodes --policies naive,greedy-oracle -n
says err "each job stays on one of 4 nodes" "an oracle that was named, on nodes: the reason"
expect 2 "an oracle among daemons" compare $trace $measured --policies naive,greedy-oracle --daemons 3:shared -n
says err "3 daemons share this one" "an oracle among daemons: the reason"
expect 2 "a baseline that is left out" compare $trace $nodes --baseline greedy-oracle -n
# Of the example one network and few levels: 36 runs to learn from.
sed -e '/"resnet"/d' -e 's/^\( *"lenet5": .*\)},$/\1}/' -e 's/"batches": .*/"batches": [64, 256],/' \
	-e 's/"levels": .*/"levels": {"cpus": [1], "gpus": [0, 1, 2], "njobs": [2]},/' configs/worlds/gpus.json >"$dir/gpus.json"
expect 0 "the usual policies where gpus are counted" compare gen:poisson,jobs=20,rate=0.3,network=lenet5,gpus=0\|1 \
	--world "fluid:$dir/gpus.json" --replications 1
says err "left out: policy greedy-oracle knows no gpus" "the usual policies where gpus are counted: who is left out"
says out "boost-full" "the usual policies where gpus are counted: the others have run"

# ---- usage ----
expect 2 "an unknown policy" compare $trace $measured --policies courier,postridre
says err "'postrider'" "an unknown policy: the nearest is named"
expect 2 "a policy twice" compare $trace $measured --policies naive,naive
expect 2 "a baseline that is not compared" compare $trace $measured --policies naive,greedy-oracle --baseline courier
expect 2 "a replication of nothing" compare $trace $measured --policies naive --replications 1000000
expect 2 "a level of 1" compare $trace $measured --policies naive --level 1
expect 4 "a missing table" compare $trace --world "measured:$dir/nowhere.csv" $machine
finish
