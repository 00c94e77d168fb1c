#!/bin/sh
# The whole road once, for real, on this machine: demo.sh BIN_DIR. Run from the root of the repository. A line a step, its log
# in build/run/STEP.log; if a step fails the end of its log is shown. The last screen says what came of it. What it makes is
# left in build/run/ to look at. BIN_DIR is build: the design and the configuration name the job as build/postrider-train.
#
# MAKE in the environment: the steps that install and build are done with it as well. RUNS in the environment: a table of an
# earlier run ($out/runs.csv), which is taken instead of measuring again.
set -u
if [ $# -ne 1 ]; then
	echo "usage: demo.sh BIN_DIR" >&2
	exit 2
fi
bin=$1
out=build/run
table=$out/runs.csv
model=$out/runs.model
daemon= child=
mkdir -p "$out" || exit 1
chmod go-w "$out"

# A step runs in the background, where Ctrl-C does not reach it.
leave() {
	[ -n "$child" ] && kill "$child" 2>/dev/null && wait "$child" 2>/dev/null
	[ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
	child= daemon=
}
trap leave EXIT
trap 'exit 130' INT TERM

# ---- a step is a line ----

moment() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(moment)" 'BEGIN { printf "%.0f s", b - a }'; }
log_of() { echo "$out/$(echo "$1" | tr ' ' -).log"; }

failed() { # STEP
	[ -t 1 ] && printf '\r\033[K'
	printf '  %-11s failed; the end of %s:\n' "$1" "$(log_of "$1")"
	tail -n 12 "$(log_of "$1")"
	exit 1
}

# How far the step at hand is, in percent, from what it has left behind; nothing: not known.
share_done() { # STEP
	case $1 in
	building) [ "$to_build" -gt 0 ] && echo $((100 * $(grep -c '^  CC ' "$(log_of building)") / to_build)) ;;
	measuring) echo $((100 * ($(wc -l <"$table.profile/journal.jsonl" 2>/dev/null || echo 1) - 1) / runs)) ;;
	running) echo $((100 * $("$bin/postrider" list -q --state done,failed,cancelled,rejected,lost 2>/dev/null | wc -l) / 12)) ;;
	esac
}

# Where the share is not known, a part of the bar goes to and fro.
bar() { # PERCENT SECONDS
	awk -v p="$1" -v s="$2" 'BEGIN {
		known = p != ""; p = p > 100 ? 100 : p; at = int(4 * s) % 32; at = at > 16 ? 32 - at : at
		for (i = 0; i < 20; i++) b = b ((known ? i < p / 5 : i >= at && i < at + 4) ? "#" : ".")
		printf known ? "[%s] %3d %%" : "[%s]      ", b, p }'
}

# step NAME COMMAND...: runs it into its log. On a terminal the line shows the time and, where it is known, how far it is.
step() {
	name=$1 began=$(moment)
	shift
	"$@" >"$(log_of "$name")" 2>&1 &
	child=$!
	while [ -t 1 ] && kill -0 $child 2>/dev/null; do
		share=$(share_done "$name" 2>/dev/null)
		printf '\r\033[K  %-11s %s %s' "$name" "$(bar "$share" "$(since "$began")")" "$(since "$began")"
		sleep 0.3
	done
	wait $child || failed "$name"
	child=
	took=$(since "$began")
}
say() { # NAME WHAT
	[ -t 1 ] && printf '\r\033[K'
	printf '  %-11s %-76s %6s\n' "$1" "$2" "$took"
}

# ---- install, build, measure, train ----

echo "A real training job is measured here, then limits decide the batches of its runs. About two minutes."
if [ -n "${MAKE:-}" ]; then
	# shellcheck disable=SC2086 # make and its options
	step installing $MAKE --no-print-directory deps
	installed=$(sed -n 's/^installing: *//p' "$(log_of installing)")
	say installing "$(echo "${installed:-nothing was missing}" | cut -c1-76)"
	# shellcheck disable=SC2086
	to_build=$($MAKE --no-print-directory -n all 2>/dev/null | grep -c '^echo "  CC ')
	# shellcheck disable=SC2086
	step building $MAKE --no-print-directory "-j$(nproc)" all
	say building "$(grep -c '^  CC ' "$(log_of building)") files compiled"
fi

if ! "$bin/postrider-train" --network simplenet --data "$out/digits" --samples 12000 --epochs 1 -q >/dev/null 2>&1; then
	step digits "$bin/postrider-train" --make-digits "$out/digits" --samples 12000 --test 2000
	say digits "14,000 drawn by a generator: nothing is downloaded"
fi

if [ -n "${RUNS:-}" ]; then
	[ "$RUNS" -ef "$table" ] || cp "$RUNS" "$table" || exit 1
else
	runs=$("$bin/postrider" profile configs/designs/quick.json -o "$table" --restart -n 2>&1 | sed -n 's/.*[^0-9]\([0-9][0-9]*\) runs.*/\1/p' | head -n 1)
	runs=${runs:-32}
	step measuring "$bin/postrider" profile configs/designs/quick.json -o "$table" --restart
	say measuring "$(($(wc -l <"$table.profile/journal.jsonl") - 1)) runs of two networks with batches 32, 128 and 512, alone and side by side"
fi

step training "$bin/postrider" train "$table" -o "$model" --policy postrider
say training "$(sed -n 's/^Model written to .* (\(.*\), seed.*/\1/p' "$(log_of training)"): a random forest on what a queueing model gets wrong"

# ---- twelve jobs ----

rm -rf "$out/state"
"$bin/postriderd" --config configs/demo.json 2>"$(log_of daemon)" &
daemon=$!
export POSTRIDER_SOCKET="$out/postrider.sock"
tries=0
until "$bin/postrider" stats -q >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -gt 100 ] && failed daemon
	kill -0 "$daemon" 2>/dev/null || failed daemon
	sleep 0.1
done

# bounds NETWORK MOST: the shortest limit that the daemon would promise now with each batch, whatever else the machine does, in a
# variable of its name. It is a day less what would be left of a day. Where the machine is far busier than it was while the job
# was measured, bounds are hours; it is at most MOST times what is expected.
b32='' b128='' b512=''
bounds() {
	"$bin/postrider" submit digits -q --json --dry-run --set "network=$1" --slo 1d |
		tr -d ' \n' | sed 's/{"batch":/\n&/g' >"$out/bounds"
	for batch in 32 128 512; do
		said=$(sed -n "s/^{\"batch\":$batch,.*\"time_s\":\([0-9.e+-]*\).*\"headroom_s\":\([0-9.e+-]*\).*/\1 \2/p" "$out/bounds" | head -n 1)
		[ -n "$said" ] || return 1
		eval "b$batch=$(echo "$said" | awk '{ b = 86400 - $2; most = '"$2"' * $1; printf "%.6f", b < most ? b : most }')"
	done
}

submit() { # NETWORK LIMIT: waits for nothing; what cannot be promised is taken for a chance of 0.3 (configs/demo.json)
	"$bin/postrider" submit digits -q --set "network=$1" --slo "${2}s"
}

twelve_jobs() {
	# One at a time, each with more time than the one before: a limit above the bound of one batch, and below that of the next.
	for rule in 'b512, b128' 'b128, b32' 'b32, 2 * b32'; do
		bounds simplenet 1e9 || return 1
		limit=$(awk -v b32="$b32" -v b128="$b128" -v b512="$b512" \
			"function between(a, b) { return sqrt(a * b) } BEGIN { printf \"%.3f\", between($rule) }")
		submit simplenet "$limit" && "$bin/postrider" wait "$("$bin/postrider" list -q --limit 1)" --timeout 120s >/dev/null 2>&1
	done
	# A burst: nine at once, limits from generous to hopeless.
	n=0
	for share in 3 1.5 3 0.9 1 1.2 0.2 2 4; do
		network=simplenet
		[ $((n % 2)) = 0 ] && network=lenet5
		bounds $network 4 || return 1
		submit $network "$(awk "BEGIN { printf \"%.2f\", $share * $b128 }")"
		n=$((n + 1))
		sleep 0.3
	done
	for id in $("$bin/postrider" list -q --state queued,running); do
		# A job that was taken by chance is stopped when its chance has gone.
		"$bin/postrider" wait "$id" --timeout 120s 2>&1 || "$bin/postrider" status "$id" | grep -q chance || return 1
	done
	"$bin/postrider" list --all --jsonl >"$out/jobs.jsonl"
	for id in $("$bin/postrider" list -q --all | sort -n); do
		"$bin/postrider" explain "$id"
		echo
	done >"$out/decisions.txt"
}
step running twelve_jobs
say running "12 jobs with limits from generous to hopeless, the last nine at once"

# ---- the same jobs, one batch for all ----

best() {
	"$bin/postrider" compare --from-history "$out/state" --resample 120 --world "measured:$table" \
		--cluster "cores=$(nproc),slots=4" --policies postrider,fixed:32,fixed:128,fixed:512,courier,naive \
		--baseline postrider --replications 12 -o "$out/compare" --json -q >"$out/compare.json" &&
		"$bin/postrider" report "$out/compare"
}
step comparing best
say comparing "such jobs, replayed with the same batch for every job, and by other rules"

awk -f tests/demo.awk "$out/jobs.jsonl" "$out/compare.json" >"$out/screen.txt"
awk -f tests/demo/screen.awk "$out/screen.txt" >"$out/screen.svg"
cat "$out/screen.txt"
cat <<END

  a picture: $out/compare/report.html    all candidates of each job: $out/decisions.txt
  your own script, in three commands:
    build/postrider init -- ./train.py --batch-size {batch} --epochs {epochs}
    build/postrider profile train-postrider
    build/postrider run train-postrider --slo 5m
END
