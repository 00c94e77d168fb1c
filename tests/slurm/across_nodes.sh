#!/bin/sh
# The reference training job across nodes of a real Slurm: srun starts its workers, which find each other by what Slurm tells them and meet over
# TCP. The nodes are called by addresses of the loopback, as names of three machines that are one would not be found.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_nodes="127.0.0.11 127.0.0.12 127.0.0.13"
after_configure=call_nodes_by_address
call_nodes_by_address() {
	sed -i 's/n\[1-2\]/127.0.0.[11-12]/; s/\bNodeName=n\([1-3]\)/NodeName=127.0.0.1\1/; s/Nodes=n3/Nodes=127.0.0.13/' "$SLURM_CONF" "$S/gres.conf"
}
cluster_start
train() { # OPTION... of srun, then -- and those of the job
	srun --chdir=/ --quiet "$@" >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="srun $*"
}
job="$BIN/postrider-train --network simplenet --data $dir/digits --batch 64 --epochs 1 --samples 512 --seed 3 --json"
"$BIN/postrider-train" --make-digits "$dir/digits" --samples 512 --test 100 -q >"$dir/out" 2>"$dir/err"
# shellcheck disable=SC2086 # words are meant
{
	$job --workers 3 >"$dir/here" 2>"$dir/err"
	train --nodes=2 --ntasks=3 --ntasks-per-node=2 $job --peers slurm
	code_is 0 "three workers on two nodes find each other"
	that "and train as three on one machine do" "$python" -c "import json
def last(path): return [json.loads(l) for l in open(path) if l.startswith('{')][-1]
a, b = last('$dir/here'), last('$dir/out')
assert a['accuracy'] == b['accuracy'], (a, b)"
	train --nodes=2 --ntasks=2 --distribution=cyclic $job --peers slurm
	code_is 0 "one worker a node"
	$job --peers slurm --rank 0 >"$dir/out" 2>"$dir/err"
	code=$? ran="postrider-train --peers slurm"
	that "outside of Slurm it is refused" test "$code" -ne 0
	says err "this is no step of Slurm" "with the reason"
}
finish
