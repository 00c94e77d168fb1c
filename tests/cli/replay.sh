#!/bin/sh
# postrider replay: one policy, one trace, one world; what-ifs; what is refused.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh
trace=gen:poisson,jobs=60,gap=1.5
machine="--cluster cores=2,slots=4"
table=configs/profiles/two-cores/runs.csv
measured="--world measured:$table $machine"
fluid="--world fluid $machine"

# ---- what comes out ----
expect 0 "a generated trace is replayed" replay $trace --policy fixed:128 $fluid
says out "60 jobs" "the trace is described"
says out "world fluid on 2 cores with 4 slots" "world and machine are named"
says out "fixed:128" "the policy has a row"
says out "promises nothing" "a policy that promises nothing is marked"
says err "decisions took" "decision times are talk"
expect 0 "-q is quiet" replay $trace --policy fixed:128 $fluid -q
silent err "-q leaves stderr empty"
expect 0 "as JSON" replay $trace --policy fixed:128 $measured --json
json "$dir/out" "JSON: kind, seed and the policy" \
	"d['kind'] == 'replay' and d['seed'] == 1 and d['replications'] == 1 and
	 [p['name'] for p in d['policies']] == ['fixed:128'] and d['policies'][0]['jobs'] == 60"
json "$dir/out" "JSON: shares are shares" \
	"0 <= d['policies'][0]['attainment'] <= 1 and len(d['policies'][0]['attainment_ci']) == 2"
cp "$dir/out" "$dir/one"
run replay $trace --policy fixed:128 $measured --json --threads 1 -q
same "$dir/out" "$dir/one" "other threads, the same bytes"
run replay $trace --policy fixed:128 $measured --json --seed 2
json "$dir/out" "another seed, other jobs" "d['trace']['fingerprint'] != '$(sed -n 's/.*"fingerprint": "\(.*\)".*/\1/p' "$dir/one")'"
json "$dir/one" "the command line is kept without what changes nothing" \
	"d['command'].startswith('postrider replay $trace --policy fixed:128') and '--json' not in d['command']"

expect 0 "the oracle can be replayed alone" replay $trace --policy greedy-oracle $measured --json
that "the name of today: no notice" test -z "$(grep "now called" "$dir/err")"
sed '/"command"/d' "$dir/out" >"$dir/oracle"
expect 0 "the old name of the oracle works" replay $trace --policy oracle $measured --json
says err "policy oracle is now called greedy-oracle" "the old name: a notice says the new one"
sed -i '/"command"/d' "$dir/out"
same "$dir/out" "$dir/oracle" "the old name: the same figures, under the new name"
expect 0 "a folder is written" replay $trace --policy fixed:128 $measured -o "$dir/run" --json
same "$dir/out" "$dir/run/compare.json" "compare.json is what --json prints"
that "jobs.csv has a row a job" test "$(wc -l <"$dir/run/jobs.csv")" -eq 61
that "timing.json is there" test -s "$dir/run/timing.json"
cp "$dir/run/jobs.csv" "$dir/jobs.csv"
expect 0 "a folder is written again" replay $trace --policy fixed:128 $measured -o "$dir/run" --threads 1
same "$dir/run/compare.json" "$dir/one" "written again: the same bytes"
same "$dir/run/jobs.csv" "$dir/jobs.csv" "written again: the same jobs"
mkdir "$dir/mine" && echo precious >"$dir/mine/notes"
expect 2 "a folder of something else is left alone" replay $trace --policy fixed:128 $fluid -o "$dir/mine"
says err "notes" "a folder of something else: what is in it is named"
that "a folder of something else still has it" grep -q precious "$dir/mine/notes"

# ---- files as traces ----
cat >"$dir/t.csv" <<'END'
arrival_s,network,epochs,samples,cpus,slo_s
0,lenet5,4,12000,1,5
0.5,simplenet,4,12000,2,5
2.25,lenet5,4,12000,4,9
END
expect 0 "a CSV file is replayed" replay "$dir/t.csv" --policy fixed:64 $measured --json
json "$dir/out" "a CSV file: its three jobs" "d['policies'][0]['jobs'] == 3 and d['policies'][0]['met'] == 3"
grep -v '"\(command\|name\)":' "$dir/out" >"$dir/by-name"
"$postrider" replay - --policy fixed:64 $measured --json <"$dir/t.csv" 2>"$dir/err" |
	grep -v '"\(command\|name\)":' >"$dir/by-pipe"
same "$dir/by-pipe" "$dir/by-name" "the same on standard input"
sed 's/2.25,/soon,/' "$dir/t.csv" >"$dir/bad.csv"
expect 6 "a bad trace is refused" replay "$dir/bad.csv" --policy fixed:64 $measured
says err "bad.csv:4" "a bad trace: its line is named"
silent out "a bad trace: nothing on stdout"
sed 's/simplenet/resnet/' "$dir/t.csv" >"$dir/other.csv"
expect 6 "with --strict a job that the world does not know is refused" \
	replay "$dir/other.csv" --policy fixed:64 $measured --strict
says err "resnet" "a job that the world does not know: it is named"
expect 0 "otherwise it is left out" replay "$dir/other.csv" --policy fixed:64 $measured
says err "of 3 jobs left out" "a job left out: how many is said"
says err "resnet" "a job left out: why is said"
says out "of 3 jobs left out" "a job left out: the result says it too"

# ---- what-ifs ----
run replay $trace --policy fixed:128 $measured --set cluster.cores=4 --json
json "$dir/out" "--set cluster.cores: slots follow" "d['cluster']['cores'] == 4 and d['cluster']['slots'] == 8"
run replay $trace --policy fixed:128 $measured --set slo.scale=0.001 --json
json "$dir/out" "--set slo.scale: nothing is in time any more" "d['policies'][0]['met'] == 0"
expect 0 "--drift, --stragglers, --failures and --noise together" replay $trace --policy fixed:128 $measured \
	--drift 20%@50% --stragglers 10%x3 --failures 20% --noise 0.2 --json
json "$dir/out" "disturbances: some jobs failed" "d['policies'][0]['failed'] > 0 and d['disturbances']['stragglers'] == 0.1"

expect 0 "--capacity searches the cores" replay $trace --policy fixed:128 $measured --capacity 90% --to 16 --json
json "$dir/out" "--capacity: the least that is enough, and its neighbour below is not" \
	"d['by'] == 'cluster.cores' and d['of'] == 'attainment_all' and
	 (lambda p: all(q['holds'] == (q['mean'] >= 0.9) for q in p['points']) and
	  min(q['value'] for q in p['points'] if q['holds']) == p['answer'])(d['policies'][0])"
expect 0 "--capacity of what can not be" replay $trace --policy fixed:128 $measured --set slo.scale=0.001 --capacity 90% --to 4
says out "no cluster.cores from 1 to 4" "--capacity of what can not be: said so"
expect 0 "--capacity by slots of the response time" replay $trace --policy fixed:128 $measured --capacity 20 --of response_p95_s \
	--by cluster.slots --from 4 --to 8
says out "cluster.slots=" "--capacity by slots: an answer"
expect 2 "--capacity above 100%" replay $trace --policy fixed:128 $measured --capacity 120%
expect 2 "--capacity of no metric" replay $trace --policy fixed:128 $measured --capacity 90% --of attainmet
says err "'attainment'" "--capacity of no metric: the nearest is named"
expect 2 "--capacity by a scale" replay $trace --policy fixed:128 $measured --capacity 90% --by slo.scale
expect 2 "--of without --capacity" replay $trace --policy fixed:128 $measured --of attainment
expect 2 "--from above --to" replay $trace --policy fixed:128 $measured --capacity 90% --from 9 --to 3

# ---- the dry run ----
expect 0 "a dry run" replay $trace --policy fixed:128 $measured -n -o "$dir/never"
says out "Nothing was run" "a dry run says so"
says out "2 cores, 4 slots" "a dry run names the machine"
that "a dry run writes nothing" test ! -e "$dir/never"
expect 6 "a dry run reads the trace" replay "$dir/bad.csv" --policy fixed:64 $measured -n

# ---- models ----
if "$postrider" train "$table" -o "$dir/m" --model queueing -q 2>"$dir/err"; then
	expect 2 "a model trained on the table that happens is refused" replay $trace --policy queueing $measured --model "$dir/m"
	says err "repeat them" "a model trained on the table that happens: the reason is said"
	cp "$table" "$dir/copy.csv"
	expect 2 "the same with a copy of the table" replay $trace --policy queueing --world "measured:$dir/copy.csv" $machine \
		--model "$dir/m"
	expect 0 "in another world it is welcome" replay $trace --policy queueing $fluid --model "$dir/m"
	expect 2 "a model that the policy does not take" replay $trace --policy courier $fluid --model "$dir/m"
	says err "forest" "a model that the policy does not take: what it wants is said"
else
	not_ok "there is a model to hand over" "$(last_words)"
fi

# ---- usage ----
expect 2 "no policy" replay $trace $fluid
says err "--policy postrider" "no policy: how to name one"
expect 2 "no world" replay $trace --policy naive
says err "measured:TABLE.csv" "no world: which there are"
expect 2 "no trace" replay --policy naive $fluid
says err "--from-history" "no trace: what could be given"
expect 2 "a trace and a history" replay $trace --policy naive $fluid --from-history "$dir"
expect 2 "an unknown policy" replay $trace --policy postridr $fluid
says err "'postrider'" "an unknown policy: the nearest is named"
expect 2 "an unknown world" replay $trace --policy naive --world magic
expect 2 "an unknown generator" replay gen:poison --policy naive $fluid
expect 2 "two policies" replay $trace --policy naive,courier $fluid
says err "postrider compare" "two policies: the verb for that is named"
expect 4 "a missing trace" replay "$dir/nowhere.csv" --policy naive $fluid
expect 4 "a missing table" replay $trace --policy naive --world "measured:$dir/nowhere.csv" $machine
expect 4 "a missing schema" replay $trace --policy naive $measured --schema "$dir/nowhere.json"
expect 4 "a missing model" replay $trace --policy queueing $fluid --model "$dir/nowhere"
expect 4 "a missing history" replay --from-history "$dir/nowhere" --policy naive $fluid
expect 2 "a bad drift" replay $trace --policy naive $fluid --drift fast
says err "drift 'fast'" "a bad drift: it is named"
expect 2 "a bad noise" replay $trace --policy naive $fluid --noise loud
expect 2 "an option that was removed" replay $trace --policy naive $fluid --explore 10%
says err "--explore was removed" "an option that was removed: it says so"
expect 2 "another option that was removed" replay $trace --policy naive $fluid --hysteresis 0.05
says err "--hysteresis was removed" "another option that was removed: it says so"
expect 2 "a key twice" replay $trace --policy naive $fluid --set noise=0.1 --set noise=0.2
expect 2 "a sweep and a capacity" replay $trace --policy naive $fluid --sweep noise=0,0.1 --capacity 99%

# ---- jobs that stay on one node ----
nodes="--world fluid --cluster cores=8,slots=16,nodes=4,place=promise"
expect 0 "jobs are placed on nodes" replay $trace --policy fixed:128 $nodes
says out "on 8 cores with 16 slots on 4 nodes (promise)" "nodes and placement are named"
expect 0 "the same as JSON" replay $trace --policy fixed:128 $nodes --json
json "$dir/out" "JSON: the whole cluster" \
	"d['cluster'] == {'cores': 8, 'slots': 16, 'nodes': 4, 'place': 'promise'} and d['policies'][0]['jobs'] == 60"
expect 0 "more nodes of the same size" replay $trace --policy fixed:128 $nodes --set cluster.nodes=8 --json
json "$dir/out" "JSON: eight nodes of two cores" "d['cluster']['cores'] == 16 and d['cluster']['slots'] == 32"
expect 2 "an oracle places no jobs" replay $trace --policy greedy-oracle $nodes
says err "decides for one machine" "an oracle places no jobs: the reason"
expect 2 "unknown placement" replay $trace --policy fixed:128 --world fluid --cluster cores=8,place=promis
says err "did you mean 'promise'" "unknown placement: a hint"
expect 2 "slots that the nodes cannot share" replay $trace --policy fixed:128 --world fluid \
	--cluster cores=8,slots=9,nodes=4,place=promise
says err "9 slots on 4 nodes" "slots that the nodes cannot share: the reason"

expect 0 "daemons share a cluster" replay $trace --policy fixed:128 $nodes --daemons 2:shared
says out "on 4 nodes (promise), 2 daemons (shared)" "daemons are named"
expect 0 "daemons with parts, as JSON" replay $trace --policy fixed:128 $nodes --daemons 4 --json
json "$dir/out" "JSON: daemons" "d['daemons'] == 4 and d['share'] == 'parts'"
expect 2 "more daemons than nodes" replay $trace --policy fixed:128 $nodes --daemons 5
says err "5 daemons on 4 nodes" "more daemons than nodes: the reason"
expect 0 "they may share one machine" replay $trace --policy fixed:128 $fluid --daemons 5:shared
for bad in 0 65 2.5 x 2: 2:share ""; do
	expect 2 "--daemons '$bad'" replay $trace --policy fixed:128 $nodes --daemons "$bad"
	says err "daemons" "--daemons '$bad': the option is named"
done
expect 2 "an oracle has no daemons" replay $trace --policy greedy-oracle $fluid --daemons 2:shared

# ---- gpus ----
gpu_jobs="gen:poisson,jobs=60,rate=0.3,cpus=1|2,network=lenet5|resnet,gpus=0|1|2,epochs=4,samples=12000,slo=lognormal:25:0.6"
sed 's/"batches": .*/"batches": [64, 256],/' configs/worlds/gpus.json >"$dir/gpus.json" # half the runs to learn from
gpu_world="--world fluid:$dir/gpus.json"
expect 0 "jobs with gpus are replayed" replay "$gpu_jobs" --policy queueing $gpu_world -o "$dir/gpus" --json
json "$dir/out" "JSON: the gpus of the cluster" "d['cluster']['gpus'] == 4 and d['world']['costs']['device_record_s'] == 3e-05"
that "the table has the gpus" grep -q "^network,gpus,cpus" "$dir/gpus/training.csv"
expect 0 "a model of times at gpus" train "$dir/gpus/training.csv" -o "$dir/gpus.model" --model queueing -q
expect 0 "which says so" model show "$dir/gpus.model"
says out "at its devices" "which says so: in the sentence"
run predict "$dir/gpus.model" --job network=resnet,cpus=1,njobs=1,epochs=4,samples=12000,gpus=1 --json
cp "$dir/out" "$dir/one-gpu"
run predict "$dir/gpus.model" --job network=resnet,cpus=1,njobs=1,epochs=4,samples=12000,gpus=2 --json
that "two gpus are faster than one" python3 -c "
import json
one, two = (json.load(open(p))['candidates'][0]['time_s'] for p in ('$dir/one-gpu', '$dir/out'))
assert two < 0.8 * one, (one, two)"
expect 2 "an oracle knows no gpus" replay "$gpu_jobs" --policy greedy-oracle $gpu_world
says err "knows no gpus" "an oracle knows no gpus: the reason"
expect 6 "gpus that are no number" replay "gen:poisson,jobs=4,network=lenet5,gpus=many" --policy fixed:128 $gpu_world
says err "gpus" "gpus that are no number: the column is named"

# ---- jobs of a kind that the model has never seen ----
grep -E '^network|^lenet5' $table >"$dir/lenet5.csv"
expect 0 "a model of one network" train "$dir/lenet5.csv" --policy postrider -o "$dir/lenet5.model" -q
expect 0 "another network is replayed" replay gen:poisson,jobs=20,gap=2,network=simplenet,slo=6 --policy postrider $measured \
	--model "$dir/lenet5.model" -o "$dir/stranger" -q
that "it is taken without a promise until nine have ended, as the daemon takes it" python3 -c "
import csv
jobs = list(csv.DictReader(open('$dir/stranger/jobs.csv')))
promised = ''.join(r['promised'] for r in jobs)
assert promised.startswith('0' * 9) and promised.endswith('1' * 8), promised"
that "its runs tell how long it takes: bounds are near the times then" python3 -c "
import csv
jobs = list(csv.DictReader(open('$dir/stranger/jobs.csv')))[9:]
wide = [float(r['upper_s']) / float(r['run_s']) for r in jobs]
assert max(wide) < 3 and sum(w >= 1 for w in wide) >= 10, wide"

# ---- Ctrl-C ----
"$postrider" replay gen:poisson,jobs=3000000,gap=0.01 --policy fixed:128 $fluid -o "$dir/stopped" >"$dir/out" 2>"$dir/err" &
pid=$!
sleep 0.4
kill -TERM $pid 2>/dev/null
wait $pid 2>/dev/null
that "a run that is stopped leaves no folder behind" test ! -e "$dir/stopped/compare.json"
finish
