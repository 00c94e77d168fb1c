#!/bin/sh
# slo.sh BIN_DIR OUT_DIR [JOBS]: real training jobs under the daemon, the same ones under each policy. Run from the root
# of the repository, on a machine with nothing else to do: what else runs is in the numbers.
#
# A quick profile of the reference job here and now; one model from it; then for each policy a fresh daemon and JOBS (72)
# jobs: network, cpus, gap to the next arrival and objective from a fixed random sequence, the objective between 0.6 and
# 6 times the 90 % bound of the job alone with batch 128. OUT_DIR/jobs.csv has a row a job and policy, the table that is
# printed at the end is made of it. Below it the same jobs, replayed from the daemon's history in the world of that profile:
# how far the simulation is from what really happened.
set -u
if [ $# -lt 2 ]; then
	echo "usage: slo.sh BIN_DIR OUT_DIR [JOBS]" >&2
	exit 2
fi
bin=$1 out=$2 jobs=${3:-72}
mkdir -p "$out" || exit 1
chmod go-w "$out"
daemon=
leave() { [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; daemon=; }
trap leave EXIT
trap 'exit 130' INT TERM
stop() { echo "slo.sh: $1" >&2; exit 1; }

[ -e build/run/digits ] || "$bin/postrider-train" --make-digits build/run/digits --samples 12000 --test 2000 -q || stop "no digits"
if [ ! -e "$out/runs.csv" ]; then
	"$bin/postrider" profile tests/experiment/slo-design.json -o "$out/runs.csv" -q || stop "measuring failed"
fi
"$bin/postrider" train "$out/runs.csv" -o "$out/runs.model" --policy postrider --set "cores=$(nproc)" \
	--group network,cpus,njobs,batch -q >/dev/null ||
	stop "training failed"

bound_of() {
	"$bin/postrider" predict "$out/runs.model" -q --json --job "network=$1,cpus=$2,njobs=1,batch=128,epochs=4,samples=12000" |
		sed -n 's/.*"upper_s": *\([0-9.e+-]*\).*/\1/p' | head -n 1
}
for network in lenet5 simplenet; do
	for cpus in 1 2; do
		echo "$network $cpus $(bound_of $network $cpus)"
	done
done >"$out/bounds"

# gap_s network cpus slo_s, one job a line; a plain generator, so that awk's own does not matter
awk -v jobs="$jobs" '
function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
{ bound[$1, $2] = $3 }
END {
	state = 20261116
	for (i = 0; i < jobs; i++) {
		network = random() < 0.5 ? "lenet5" : "simplenet"
		cpus = random() < 0.5 ? 1 : 2
		printf "%.3f %s %d %.3f\n", -0.7 * log(1 - random()), network, cpus, bound[network, cpus] * 0.6 * exp(log(10) * random())
	}
}' "$out/bounds" >"$out/arrivals"

echo "policy,job,network,cpus,slo_s,verdict,state,batch,predicted_s,upper_s,response_s,outcome,predicted_accuracy,accuracy" >"$out/jobs.csv"
for policy in postrider naive; do
	state=$out/state-$policy
	rm -rf "$state"
	POSTRIDER_SOCKET=$out/$policy.sock
	export POSTRIDER_SOCKET
	"$bin/postriderd" --config configs/demo.json --socket "$POSTRIDER_SOCKET" --state "$state" --model "$out/runs.model" \
		--policy $policy 2>"$out/$policy.log" &
	daemon=$!
	sleep 1
	while read -r gap network cpus slo; do
		sleep "$gap"
		"$bin/postrider" submit digits --set "network=$network" --cpus "$cpus" --slo "${slo}s" -q >/dev/null
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
			printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", policy, field("job"), field("network"), field("cpus"), field("slo_s"),
				field("verdict"), field("state"), field("batch"), field("predicted_s"), field("upper_s"), field("response_s"),
				field("slo_outcome"), field("predicted_accuracy"), field("accuracy")
		}' | sort -t, -k2n >>"$out/jobs.csv"
	leave
done

awk -F, 'NR > 1 {
	p = $1
	if (!(p in n)) order[++k] = p
	n[p]++
	if ($6 == "rejected") rejected[p]++
	# naive promises nothing it could keep to: what it takes counts
	taken = p == "naive" ? $6 != "rejected" : $6 == "promised"
	if (taken && $12 != "") { promised[p]++; met[p] += $12 == "met" }
	if ($12 == "met") { met_all[p]++; accuracy[p] += $14 }
	if ($7 == "done" && $10 != "" && p != "naive") { bounded[p]++; inside[p] += $11 <= $10 }
}
END {
	print "policy     jobs  rejected  taken  met in time  of those taken  of all  accuracy of the met  within the bound"
	for (i = 1; i <= k; i++) {
		p = order[i]
		printf "%-10s %4d %9d %6d %12d %14.1f %% %5.1f %% %20.4f  %s\n", p, n[p], rejected[p], promised[p], met[p], 100 * met[p] / promised[p],
			100 * met_all[p] / n[p], accuracy[p] / met_all[p], bounded[p] ? sprintf("%d of %d", inside[p], bounded[p]) : "-"
	}
}' "$out/jobs.csv"

echo
echo "The same jobs replayed (the history of the first daemon), 20 times with other luck:"
"$bin/postrider" compare --from-history "$out/state-postrider" --world "measured:$out/runs.csv" --cluster "cores=$(nproc),slots=4" \
	--policies postrider,naive,courier,oracle --baseline naive --replications 20 -o "$out/replayed" -q || stop "replaying failed"
