#!/bin/sh
# The whole road once, for real, on this machine: demo.sh BIN_DIR. Run from the root of the repository; what
# it makes is left in build/run/ to look at. BIN_DIR is build: the design names the job as build/postrider-train.
set -u
if [ $# -ne 1 ]; then
	echo "usage: demo.sh BIN_DIR" >&2
	exit 2
fi
bin=$1
out=build/run
table=$out/runs.csv
model=$out/runs.model
mkdir -p "$out" || exit 1

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

stop() { # what
	echo "demo: $1" >&2
	exit 1
}

echo "Digits to train on, drawn by a generator: nothing is downloaded."
[ -e "$out/digits/train-images-idx3-ubyte" ] ||
	show postrider-train --make-digits "$out/digits" --samples 12000 --test 2000 || stop "no digits"

echo
echo "A short designed experiment on this machine: 48 settings of a real training job, alone and beside others."
show postrider profile configs/designs/quick.json -o "$table" --restart || stop "measuring failed"

echo
echo "Models of time and of accuracy, compared on settings they have not seen."
show postrider train "$table" -o "$model" --group network,cpus,njobs,batch || stop "training failed"

# An objective that is neither generous nor hopeless on this machine: the bound of batch 128.
bound_of() { # JOB BATCH
	"$bin/postrider" predict "$model" -q --json --job "$1,batch=$2,epochs=4,samples=12000" |
		sed -n 's/.*"upper_s": *\([0-9.e+-]*\).*/\1/p' | head -n 1
}

echo
echo "What would each batch do, and which one is the most accurate in time? Three jobs:"
first="network=lenet5,cpus=1,njobs=1,epochs=4,samples=12000"
for job in "$first" "network=lenet5,cpus=2,njobs=3,epochs=4,samples=12000" \
	"network=simplenet,cpus=1,njobs=2,epochs=4,samples=12000"; do
	slo=$(bound_of "${job%,epochs=*}" 128)
	[ -n "$slo" ] || stop "no bound for $job"
	show postrider predict "$model" --job "$job" --slo "$(printf '%.2f' "$slo")s" --confidence 0.9 ||
		echo "(refused: exit code $?)"
done

echo
echo "The first of them for real, with the batch that was chosen:"
slo=$(printf '%.2f' "$(bound_of "${first%,epochs=*}" 128)")
batch=$("$bin/postrider" predict "$model" -q --job "$first" --slo "${slo}s" --confidence 0.9) || stop "nothing was chosen"
predicted=$("$bin/postrider" predict "$model" -q --json --job "$first,batch=$batch" |
	sed -n 's/.*"time_s": *\([0-9.e+-]*\).*/\1/p' | head -n 1)
from=$(date +%s.%N)
show postrider-train --network lenet5 --batch "$batch" --workers 1 --epochs 4 --samples 12000 --data "$out/digits" ||
	stop "the job failed"
to=$(date +%s.%N)
echo
awk -v from="$from" -v to="$to" -v predicted="$predicted" -v slo="$slo" -v batch="$batch" 'BEGIN {
	took = to - from
	printf "batch %s took %.2f s; predicted %.2f s, promised at 90 %% within %.2f s: %s\n", batch, took, predicted, slo,
		took <= slo ? "kept" : "missed"
}'
