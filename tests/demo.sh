#!/bin/sh
# The whole road once, for real, on this machine: demo.sh BIN_DIR. Run from the root of the repository; what
# it makes is left in build/run/ to look at. BIN_DIR is build: the design and the configuration name the job as
# build/postrider-train.
set -u
if [ $# -ne 1 ]; then
	echo "usage: demo.sh BIN_DIR" >&2
	exit 2
fi
bin=$1
out=build/run
table=$out/runs.csv
model=$out/runs.model
log=$out/postriderd.log
daemon=
mkdir -p "$out" || exit 1
chmod go-w "$out"

# Shows the command as one would type it, then runs it from the folder of the build.
show() {
	echo
	printf '$'
	for word; do
		case $word in
		*[!A-Za-z0-9_./=,:+-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	program=$1
	shift
	"$bin/$program" "$@"
}

leave() {
	[ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
	daemon=
}
trap leave EXIT
trap 'exit 130' INT TERM

stop() { # what
	echo "demo: $1" >&2
	[ -s "$log" ] && tail -n 5 "$log" >&2
	exit 1
}

echo "Digits to train on, drawn by a generator: nothing is downloaded."
"$bin/postrider-train" --network simplenet --data "$out/digits" --samples 12000 --epochs 1 -q >/dev/null 2>&1 ||
	show postrider-train --make-digits "$out/digits" --samples 12000 --test 2000 || stop "no digits"

echo
echo "A short designed experiment on this machine: 36 settings of a real training job, alone, beside copies and mixed, twice."
show postrider profile configs/designs/quick.json -o "$table" --restart || stop "measuring failed"

echo
echo "Models of time (the queueing model, and a forest on what it gets wrong) and of accuracy."
show postrider train "$table" -o "$model" --policy postrider || stop "training failed"

echo
echo "The daemon, with that model; its log goes to $log."
rm -rf "$out/state"
printf '\n$ postriderd --config configs/demo.json &\n'
"$bin/postriderd" --config configs/demo.json 2>"$log" &
daemon=$!
export POSTRIDER_SOCKET="$out/postrider.sock"
tries=0
until "$bin/postrider" stats -q >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -gt 100 ] && stop "the daemon does not answer"
	kill -0 "$daemon" 2>/dev/null || stop "the daemon has ended"
	sleep 0.1
done

# bounds NETWORK CPUS: the shortest objective that the daemon would promise now with each batch, whatever else the machine
# does, in a variable of its name. It is a day less what would be left of a day.
b32='' b128='' b512=''
bounds() {
	"$bin/postrider" submit digits -q --json --dry-run --set "network=$1" --cpus "$2" --slo 1d |
		tr -d ' \n' | sed 's/{"batch":/\n&/g' >"$out/bounds"
	for batch in 32 128 512; do
		left=$(sed -n "s/^{\"batch\":$batch,.*\"headroom_s\":\([0-9.e+-]*\).*/\1/p" "$out/bounds" | head -n 1)
		[ -n "$left" ] || stop "no bound of batch $batch"
		eval "b$batch=$(awk "BEGIN { printf \"%.6f\", 86400 - $left }")"
	done
}

# what_became JOB CODE
what_became() {
	if [ "$2" != 0 ]; then
		echo "refused, exit code $2"
		return
	fi
	"$bin/postrider" status "$1" --json 2>/dev/null | tr -d ' \n' |
		sed 's/.*"verdict":"\([a-z_]*\)".*"batch":\([0-9]*\).*/\1, batch \2/; s/^chance/taken by chance/'
}

echo
echo "The objective decides the batch. Three jobs, one at a time, each with more time than the one before:"
for rule in 'b512, b128' 'b128, b32' 'b32, 2 * b32'; do
	bounds simplenet 2
	# above the bound of one batch, and below that of the next smaller one
	slo=$(awk -v b32="$b32" -v b128="$b128" -v b512="$b512" \
		"function between(a, b) { return sqrt(a * b) } BEGIN { printf \"%.3f\", between($rule) }")
	id=$("$bin/postrider" submit digits --set network=simplenet --cpus 2 --slo "${slo}s" -q)
	code=$?
	echo "job $id: simplenet within $slo s: $(what_became "$id" $code)"
	[ $code = 0 ] && "$bin/postrider" wait "$id" --timeout 120s >/dev/null 2>&1
done

echo
echo "Nine more with objectives from generous to hopeless, side by side. What cannot be promised is taken without a"
echo "promise if its chance to be in time is at least 0.3 (\"chance\" in the configuration, or submit --chance 0.3):"
bounds lenet5 1
show postrider submit digits --set network=lenet5 --slo "$(awk "BEGIN { printf \"%.2f\", 3 * $b32 }")s" ||
	echo "(refused: exit code $?)"
n=1
for share in 1.5 3 0.9 0.8 1 0.2 2 4; do
	sleep 0.5
	case $((n % 2)) in
	0) network=lenet5 cpus=1 ;;
	*) network=simplenet cpus=2 ;;
	esac
	bounds $network $cpus
	slo=$(awk "BEGIN { printf \"%.2f\", $share * $b128 }")
	id=$("$bin/postrider" submit digits --set "network=$network" --cpus $cpus --slo "${slo}s" -q)
	code=$?
	echo "job $id: $network within $slo s: $(what_became "$id" $code)"
	n=$((n + 1))
done

echo
echo "While they run:"
show postrider list --state queued,running
last=$("$bin/postrider" list -q --state queued,running,done --limit 1)
[ -n "$last" ] && show postrider explain "$last"

for id in $("$bin/postrider" list -q --state queued,running); do
	# a job that was taken by chance is stopped when its chance has gone
	"$bin/postrider" wait "$id" --timeout 120s >/dev/null || "$bin/postrider" status "$id" | grep -q chance ||
		stop "job $id did not end well"
done

echo
echo "What was promised, and what came of it:"
show postrider list --outcomes
show postrider stats

echo
echo "And what would other policies have done? 120 jobs at a time, drawn from these twelve and replayed in a"
echo "simulation of what was measured above. The models learn from one replication, and the other one happens:"
show postrider compare --from-history "$out/state" --resample 120 --world "measured:$table" --cluster "cores=$(nproc),slots=4" \
	--policies courier,postrider,postrider:chance=no,naive,greedy-oracle --replications 12 -o "$out/compare" -q || stop "comparing failed"
show postrider report "$out/compare" || stop "no report"

cat <<END

Where to look next:
  $out/compare/report.html  this comparison as a page, for a browser
  README.md                       your own job, in three commands; links to all the rest
  build/postrider init -- ./train.py --batch-size {batch} --epochs {epochs}
                                  the first of the three
END
