#!/bin/sh
# slo.sh BIN_DIR OUT_DIR [JOBS [LONG]]: real training jobs under the daemon, the same ones under each policy. Run from the
# root of the repository, on a machine with nothing else to do: what else runs is in the numbers. About 16 minutes.
#
# A quick profile of the reference job here and now; for each policy its model from it, a fresh daemon, and JOBS (40) jobs:
# network, cpus, gap to the next arrival and objective from a fixed random sequence, the objective between 0.6 and 6 times
# the 90 % bound of the job alone with batch 128 and 8 epochs. Every second job leaves its epochs open (2..8) and may be
# stopped after an epoch. LONG (1) jobs of a minute run beside them. fixed is the best fixed batch, found by a simulation of
# the jobs before they run. OUT_DIR/jobs.csv has a row a job and policy. The table at the end counts all jobs, a miss or a
# refusal as 0, and has beside it the same jobs simulated in the world of that profile: how far the simulation is from what
# really happened. POLICIES="postrider naive" runs fewer.
set -u
if [ $# -lt 2 ]; then
	echo "usage: slo.sh BIN_DIR OUT_DIR [JOBS [LONG]]" >&2
	exit 2
fi
bin=$1 out=$2 jobs=${3:-40} long=${4:-1}
policies=${POLICIES:-postrider greedy courier boost-full fixed naive}
mkdir -p "$out" || exit 1
chmod go-w "$out"
daemon=
leave() { [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; daemon=; }
trap leave EXIT
trap 'exit 130' INT TERM
stop() { echo "slo.sh: $1" >&2; exit 1; }

mkdir -p build/run
[ -e build/run/digits ] || "$bin/postrider-train" --make-digits build/run/digits --samples 12000 --test 2000 -q || stop "no digits"
if [ ! -e "$out/runs.csv" ]; then
	"$bin/postrider" profile tests/experiment/slo-design.json -o "$out/runs.csv" -q || stop "measuring failed"
fi
for policy in postrider courier boost-full; do
	"$bin/postrider" train "$out/runs.csv" -o "$out/$policy.model" --policy $policy --group network,cpus,njobs,batch,epochs -q \
		>/dev/null || stop "training for $policy failed"
done

# Its 90 % bound; where other work keeps the model from one, 1.3 times the expected time.
bound_of() {
	"$bin/postrider" predict "$out/postrider.model" -q --json --job "network=$1,cpus=$2,njobs=1,batch=128,epochs=8,samples=12000" |
		awk -F: '/"time_s"/ && !t { t = $2 + 0 } /"upper_s"/ && !u { u = $2 + 0 } END { print (u > 0 ? u : 1.3 * t) }'
}
for network in lenet5 simplenet; do
	for cpus in 1 2; do
		echo "$network $cpus $(bound_of $network $cpus)"
	done
done >"$out/bounds"

# gap_s network cpus slo_s epochs, one job a line; a plain generator, so that awk's own does not matter
awk -v jobs="$jobs" -v long="$long" '
function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
{ bound[$1, $2] = $3 }
END {
	state = 20261116
	for (i = 0; i < jobs; i++) {
		network = random() < 0.5 ? "lenet5" : "simplenet"
		cpus = random() < 0.5 ? 1 : 2
		printf "%.3f %s %d %.3f %s\n", -1.4 * log(1 - random()), network, cpus,
			bound[network, cpus] * 0.6 * exp(log(10) * random()), i % 2 ? "2..8" : "8"
		if (long > 0 && i % int(jobs / long) == int(jobs / long / 2)) printf "0 lenet5 1 300 260\n"
	}
}' "$out/bounds" >"$out/arrivals"

# The same jobs as a trace, without those of a minute: the profile has no such epochs.
awk 'BEGIN { print "job,arrival_s,network,cpus,epochs,samples,slo_s,batches" }
{ at += $1 } $5 != "260" { printf "%d,%.3f,%s,%d,%s,12000,%s,64|128|256|512\n", ++n, at, $2, $3, $5, $4 }' "$out/arrivals" >"$out/trace.csv"
world="--world measured:$out/runs.csv --cluster cores=$(nproc),slots=4"
# shellcheck disable=SC2086 # a list of words
"$bin/postrider" compare "$out/trace.csv" $world --policies fixed:best --replications 4 --json -q >"$out/best.json" || stop "no best batch"
best=$(sed -n 's/.*"batch": *\([0-9][0-9]*\).*/\1/p' "$out/best.json" | head -n 1)
echo "best fixed batch, by simulation: $best"

# The long ones take more epochs than the demo allows; samples and batches are those of the design.
sed 's|"max": 100,|"max": 300,|; s|"default": 8000|"default": 12000|; s|"batches": .*|"batches": [64, 128, 256, 512],|; /"chance"/d; s/"--link", "2500", //' configs/demo.json >"$out/config.json"

echo "policy,job,network,cpus,slo_s,verdict,state,batch,epochs,predicted_s,upper_s,response_s,outcome,predicted_accuracy,accuracy" >"$out/jobs.csv"
for policy in $policies; do
	state=$out/state-$policy name=$policy
	[ "$policy" = fixed ] && name=fixed:$best
	rm -rf "$state"
	POSTRIDER_SOCKET=$out/$policy.sock
	export POSTRIDER_SOCKET
	model=$out/$policy.model
	[ -e "$model" ] || model=$out/postrider.model
	"$bin/postriderd" --config "$out/config.json" --socket "$POSTRIDER_SOCKET" --state "$state" --model "$model" \
		--policy "$name" 2>"$out/$policy.log" &
	daemon=$!
	sleep 1
	while read -r gap network cpus slo epochs; do
		sleep "$gap"
		taken=
		[ "$epochs" = 2..8 ] && taken=--may-stop
		[ "$epochs" = 260 ] && taken=--best-effort
		# shellcheck disable=SC2086 # nothing, or one word
		"$bin/postrider" submit digits --set "network=$network" --cpus "$cpus" --slo "${slo}s" --epochs "$epochs" $taken -q >/dev/null
	done <"$out/arrivals"
	for id in $("$bin/postrider" list -q --all --state queued,running); do
		"$bin/postrider" wait "$id" --timeout 300s >/dev/null
	done
	"$bin/postrider" list --all --jsonl |
		awk -v policy=$policy '
		function field(name,   at, rest) {
			at = index($0, "\"" name "\":")
			if (!at) return ""
			rest = substr($0, at + length(name) + 3)
			sub(/^"/, "", rest)
			match(rest, /[",}]/)
			rest = substr(rest, 1, RSTART - 1)
			return rest == "null" ? "" : rest
		}
		{
			printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", policy, field("job"), field("network"), field("cpus"), field("slo_s"),
				field("verdict"), field("state"), field("batch"), field("epochs"), field("predicted_s"), field("upper_s"),
				field("response_s"), field("slo_outcome"), field("predicted_accuracy"), field("accuracy")
		}' | sort -t, -k2n >>"$out/jobs.csv"
	leave
done

# shellcheck disable=SC2086
"$bin/postrider" compare "$out/trace.csv" $world --policies "postrider,greedy,courier,boost-full,fixed:$best,naive" --baseline naive \
	--replications 20 --json -o "$out/replayed" -q >"$out/replayed.json" || stop "replaying failed"

# A miss, a refusal and a failure are 0; the error is that of a mean over the jobs.
sed -n 's/^ *"name": "\([^"]*\)".*/name \1/p; s/^ *"accuracy_zero": \([0-9.]*\),.*/zero \1/p; s/^ *"attainment_all": \([0-9.]*\),.*/met \1/p' \
	"$out/replayed.json" >"$out/replayed.txt"
awk -F, '
FILENAME != ARGV[2] {
	split($0, word, " ")
	if (word[1] == "name") { name = word[2]; sub(/:.*/, "", name) }
	else simulated[name, word[1]] = word[2]
	next
}
FNR > 1 {
	p = $1
	if (!(p in n)) order[++k] = p
	n[p]++
	rejected[p] += $6 == "rejected"
	if ($6 == "promised") { promised[p]++; kept[p] += $13 == "met" }
	value = $13 == "met" ? $15 : 0
	met[p] += $13 == "met"; sum[p] += value; squares[p] += value * value
	if ($7 == "done" && $11 != "") { bounded[p]++; inside[p] += $12 <= $11 }
}
END {
	print "policy      jobs  rejected  met of all  kept of promised  within the bound  accuracy, a miss is 0  simulated: met of all  accuracy"
	for (i = 1; i <= k; i++) {
		p = order[i]; mean = sum[p] / n[p]
		printf "%-10s %5d %9d %9.1f %% %17s %17s        %.3f +- %.3f  %18.1f %%  %8.3f\n", p, n[p], rejected[p], 100 * met[p] / n[p],
			promised[p] ? sprintf("%d of %d", kept[p], promised[p]) : "-", bounded[p] ? sprintf("%d of %d", inside[p], bounded[p]) : "-",
			mean, sqrt((squares[p] / n[p] - mean * mean) / (n[p] - 1)), 100 * simulated[p, "met"], simulated[p, "zero"]
	}
}' "$out/replayed.txt" "$out/jobs.csv"
