#!/bin/sh
# tenants.sh BIN_DIR OUT_DIR [RUNS.csv]: thirty real training jobs of three tenants under the daemon, and load that is not
# ours in the middle. Run from the root of the repository, on a machine with nothing else to do, as root: a tenant is a
# user. Without root there is one tenant, and that is said.
#
# One model, from RUNS.csv or a quick profile of the reference job here and now (kept in OUT_DIR). Then jobs arrive, their
# network, cpus, gap and objective from a fixed random sequence, by turns of three tenants of weight 1, 1 and 2. When
# the tenth has been submitted, two processes that do nothing but compute start; they end when the twentieth has been.
# So the first jobs that meet the load were promised without it: that is the worst of it.
# OUT_DIR/jobs.csv has a row a job; the tables that are printed are made of it. A phase is that of the submission.
set -u
if [ $# -lt 2 ]; then
	echo "usage: tenants.sh BIN_DIR OUT_DIR [RUNS.csv]" >&2
	exit 2
fi
bin=$1 out=$2 runs=${3:-$2/runs.csv}
jobs=30 hog_from=10 hog_to=20
first_uid=61001 # of nobody on this machine; the tenants have it and the two after it

mkdir -p "$out" || exit 1
chmod go-w,a+rx "$out"
daemon='' hogs=''
stop_hogs() {
	for pid in $hogs; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done
	hogs=''
}
leave() {
	stop_hogs
	if [ -n "$daemon" ]; then
		# shellcheck disable=SC2046 # a list of ids is meant: jobs outlive the daemon
		[ -z "$("$bin/postrider" list -q --all --state queued,running 2>/dev/null)" ] ||
			"$bin/postrider" cancel -q $("$bin/postrider" list -q --all --state queued,running) >/dev/null 2>&1
		kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
	fi
	daemon=''
}
trap leave EXIT
trap 'exit 130' INT TERM
stop() { echo "tenants.sh: $1" >&2; exit 1; }
now() { date -u +%Y-%m-%dT%H:%M:%S.%6NZ; }

[ -e build/run/digits ] || { mkdir -p build/run && "$bin/postrider-train" --make-digits build/run/digits --samples 12000 --test 2000 -q; } ||
	stop "no digits"
if [ ! -e "$runs" ]; then
	# its jobs have 4 epochs
	sed "s|build/postrider-train|$bin/postrider-train|; s|\[2, 8\]|[4]|" tests/experiment/slo-design.json >"$out/design.json"
	"$bin/postrider" profile "$out/design.json" -o "$runs" -q || stop "measuring failed"
fi
"$bin/postrider" train "$runs" -o "$out/runs.model" --policy postrider --group network,cpus,njobs,batch -q >/dev/null ||
	stop "training failed"

# as TENANT COMMAND...: by the user who is this tenant
tenants=3
as() {
	user=$((first_uid + $1 - 1))
	shift
	if [ $tenants -eq 1 ]; then "$@"; else setpriv --reuid=$user --regid=$user --clear-groups "$@"; fi
}
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	tenants=1
	echo "one tenant only: three take root and setpriv(1)"
elif ! as 1 test -r build/run/digits -a -x "$bin/postrider-train" -a -x "$out"; then
	tenants=1
	echo "one tenant only: other users cannot reach the programs, build/run/digits or $out"
fi

# configs/demo.json with tenants, and with the samples and batches of the table; the places are given on the command line
sed -e "s|build/postrider-train|$bin/postrider-train|" -e 's|"default": 8000|"default": 12000|' \
	-e 's|"batches": .*|"batches": [64, 128, 256, 512],|' -e '/"chance"/d' -e 's/"--link", "2500", //' -e '1s|.*|{"socket_mode": "0666",\
  "tenants": {"one": {"users": ['$first_uid'], "weight": 1}, "two": {"users": ['$((first_uid + 1))'], "weight": 1},\
              "three": {"users": ['$((first_uid + 2))'], "weight": 2}},\
  "learning": {"adapt": true}, "outside_load": true,|' configs/demo.json >"$out/config.json"

bound_of() {
	"$bin/postrider" predict "$out/runs.model" -q --json --job "network=$1,cpus=$2,njobs=1,batch=128,epochs=4,samples=12000" |
		sed -n 's/.*"upper_s": *\([0-9.e+-]*\).*/\1/p' | head -n 1
}
for network in lenet5 simplenet; do
	for cpus in 1 2; do
		echo "$network $cpus $(bound_of $network $cpus)"
	done
done >"$out/bounds"

# gap_s tenant network cpus slo_s, one job a line; the objective is 1.2 to 6 times the 90 % bound of the job alone with
# batch 128
awk -v jobs=$jobs '
function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
{ bound[$1, $2] = $3 }
END {
	state = 20261116
	for (i = 0; i < jobs; i++) {
		network = random() < 0.5 ? "lenet5" : "simplenet"
		cpus = random() < 0.5 ? 1 : 2
		gap = -log(1 - random()) * 0.7 * (bound["lenet5", 1] + bound["simplenet", 1]) / 2
		printf "%.3f %d %s %d %.3f\n", gap, i % 3 + 1, network, cpus, bound[network, cpus] * 1.2 * exp(log(5) * random())
	}
}' "$out/bounds" >"$out/arrivals"

rm -rf "$out/state"
POSTRIDER_SOCKET=$out/tenants.sock
export POSTRIDER_SOCKET
"$bin/postriderd" --config "$out/config.json" --socket "$POSTRIDER_SOCKET" --state "$out/state" --model "$out/runs.model" \
	2>"$out/daemon.log" &
daemon=$!
sleep 1
kill -0 $daemon 2>/dev/null || stop "the daemon did not start: $(tail -n 1 "$out/daemon.log")"

n=0 phase=before
: >"$out/phases"
while read -r gap tenant network cpus slo; do
	sleep "$gap"
	n=$((n + 1))
	id=$(as "$tenant" "$bin/postrider" submit digits --set "network=$network" --cpus "$cpus" --slo "${slo}s" -q 2>>"$out/submit.log" </dev/null)
	if [ -z "$id" ]; then
		stop "job $n of tenant $tenant was not taken: $(tail -n 1 "$out/submit.log")"
	fi
	echo "$id $phase" >>"$out/phases"
	if [ $n -eq $hog_from ]; then
		sh -c 'while :; do :; done' &
		hogs=$!
		sh -c 'while :; do :; done' &
		hogs="$hogs $!"
		hog_began=$(now) phase=during
	elif [ $n -eq $hog_to ]; then
		stop_hogs
		hog_ended=$(now) phase=after
	fi
done <"$out/arrivals"
for id in $("$bin/postrider" list -q --all --state queued,running); do
	"$bin/postrider" wait "$id" --timeout 300s >/dev/null
done
"$bin/postrider" stats >"$out/stats.txt"
"$bin/postrider" stats --json >"$out/stats.json"

echo "job,tenant,network,cpus,slo_s,submitted,ran_with_hog,verdict,state,batch,predicted_s,upper_s,response_s,outcome,predicted_accuracy,accuracy" \
	>"$out/jobs.csv"
"$bin/postrider" list --all --jsonl |
	awk -v phases="$out/phases" -v began="$hog_began" -v ended="$hog_ended" '
	function field(name,   at, rest) {
		at = index($0, "\"" name "\":")
		if (!at) return ""
		rest = substr($0, at + length(name) + 3)
		sub(/^"/, "", rest)
		match(rest, /[",}]/)
		rest = substr(rest, 1, RSTART - 1)
		return rest == "null" ? "" : rest
	}
	BEGIN { while ((getline line <phases) > 0) { split(line, part, " "); phase[part[1]] = part[2] } }
	{
		# Moments of RFC 3339 in UTC compare as text.
		start = field("started_at")
		met = start != "" && start < ended && field("ended_at") > began
		printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", field("job"), field("tenant"), field("network"), field("cpus"),
			field("slo_s"), phase[field("job")], met ? "yes" : "no", field("verdict"), field("state"), field("batch"),
			field("predicted_s"), field("upper_s"), field("response_s"), field("slo_outcome"), field("predicted_accuracy"),
			field("accuracy")
	}' | sort -t, -k1n >>"$out/jobs.csv"

# of COLUMN TITLE: promises by what is in that column, in the order in which it comes
of() {
	awk -F, -v column="$1" -v title="$2" 'NR > 1 {
		k = $column
		if (!(k in n)) order[++m] = k
		n[k]++; rejected[k] += $8 == "rejected"
		if ($8 == "promised") { promised[k]++; kept[k] += $14 == "met"; inside[k] += $13 != "" && $13 <= $12 }
		if ($16 != "") { ended[k]++; accuracy[k] += $16 }
	}
	END {
		printf "%-18s jobs  rejected  promised  kept             within the bound  mean accuracy\n", title
		for (i = 1; i <= m; i++) {
			k = order[i]
			printf "%-18s %4d %9d %9d  %-15s  %-16s  %s\n", k, n[k], rejected[k], promised[k],
				promised[k] ? sprintf("%d (%.0f %%)", kept[k], 100 * kept[k] / promised[k]) : "-",
				promised[k] ? sprintf("%d (%.0f %%)", inside[k], 100 * inside[k] / promised[k]) : "-",
				ended[k] ? sprintf("%.4f", accuracy[k] / ended[k]) : "-"
		}
	}' "$out/jobs.csv"
}
of 6 "submitted"
echo
of 7 "ran with the load"
echo
of 2 "tenant"
