#!/bin/sh
# The whole road once, on an example table: demo.sh BIN_DIR. Run from the root of the repository;
# what it makes is left in build/run/ to look at.
set -u
if [ $# -ne 1 ]; then
	echo "usage: demo.sh BIN_DIR" >&2
	exit 2
fi
bin=$1
out=build/run
table=$out/synthetic.csv
model=$out/example.model
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

echo "An example table with the levels of the paper: synthetic, not measured."
show postrider-synthetic -o "$table" || stop "no example table"
printf '\n$ head -n 4 %s\n' "$table"
head -n 4 "$table"

echo
echo "Two models, of time and of accuracy. Replicates of one setting stay on one side of each split."
show postrider train "$table" -o "$model" --group network,cpus,njobs,batch || stop "training failed"

echo
echo "Which batch is the most accurate whose time stays below 300 s, at 90 % confidence?"
show postrider predict "$model" --job network=lenet5,cpus=4,njobs=2 --slo 300s --confidence 0.9 ||
	stop "no answer to a question that has one"

echo
echo "60 s is too little for any batch: the job is refused, with the smallest objective that could have"
echo "been promised, and exit code 3."
show postrider predict "$model" --job network=lenet5,cpus=4,njobs=2 --slo 60s --confidence 0.9
code=$?
echo "exit code $code"
[ "$code" -eq 3 ] || stop "expected exit code 3"
