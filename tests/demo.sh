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
echo "A short designed experiment on this machine: 48 settings of a real training job, alone and beside others."
show postrider profile configs/designs/quick.json -o "$table" --restart || stop "measuring failed"

echo
echo "Models of time (the queueing model, and a forest on what it gets wrong) and of accuracy."
show postrider train "$table" -o "$model" --policy postrider --set "cores=$(nproc)" --group network,cpus,njobs,batch || stop "training failed"

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

# What the machine can do decides what is easy and what is hard: the bound of a job beside another, with batch 128.
bound_of() { # NETWORK CPUS
	"$bin/postrider" predict "$model" -q --json --job "network=$1,cpus=$2,njobs=2,batch=128,epochs=4,samples=12000" |
		sed -n 's/.*"upper_s": *\([0-9.e+-]*\).*/\1/p' | head -n 1
}
lenet=$(bound_of lenet5 1)
simple=$(bound_of simplenet 2)
[ -n "$lenet" ] && [ -n "$simple" ] || stop "no bounds"

echo
echo "A dozen jobs with objectives from generous to hopeless, two a second. What cannot be promised is taken without a"
echo "promise if it has a chance of 30 % (\"chance\" in configs/demo.json):"
show postrider submit digits --set network=lenet5 --slo "$(awk "BEGIN { printf \"%.2f\", 3 * $lenet }")s" ||
	echo "(refused: exit code $?)"
n=1
for share in 1.2 4 1 0.5 0.9 6 3 1.1 0.8 8 0.2; do
	sleep 0.5
	case $((n % 2)) in
	0) network=lenet5 cpus=1 bound=$lenet ;;
	*) network=simplenet cpus=2 bound=$simple ;;
	esac
	slo=$(awk "BEGIN { printf \"%.2f\", $share * $bound }")
	id=$("$bin/postrider" submit digits --set "network=$network" --cpus $cpus --slo "${slo}s" -q)
	code=$?
	verdict=$("$bin/postrider" status "$id" --json | sed -n 's/.*"verdict": *"\([a-z_]*\)".*/\1/p' | head -n 1)
	case $verdict in
	rejected) verdict="refused, exit code $code" ;;
	chance) verdict="taken by chance, without a promise" ;;
	esac
	echo "job $id: $network within $slo s: $verdict"
	n=$((n + 1))
done

echo
echo "While they run:"
show postrider list --state queued,running
last=$("$bin/postrider" list -q --state queued,running,done --limit 1)
[ -n "$last" ] && show postrider explain "$last"

for id in $("$bin/postrider" list -q --state queued,running); do
	"$bin/postrider" wait "$id" --timeout 120s >/dev/null || # one taken by chance may have lost it
		"$bin/postrider" status "$id" | grep -q no_chance || stop "job $id did not end well"
done

echo
echo "What was promised, and what came of it:"
show postrider list --outcomes
show postrider stats

echo
echo "And what would other policies have done? The same jobs, replayed in a simulation of what was measured above:"
show postrider compare --from-history "$out/state" --world "measured:$table" --cluster "cores=$(nproc),slots=4" \
	--policies courier,postrider,postrider:chance=0.3,naive,oracle --replications 10 -o "$out/compare" || stop "comparing failed"
show postrider report "$out/compare" || stop "no report"
