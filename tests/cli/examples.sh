#!/bin/sh
# The three commands on scripts that users know (tests/examples/): PyTorch's first example, scikit-learn's MLP, gradient
# boosting with rounds as epochs. What they look like: docs/EXAMPLES.md.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

needs() { # module...
	for module; do
		"$python" -c "import $module" 2>/dev/null || return 1
	done
}
cp tests/examples/*.py "$dir/w"
cd "$dir/w" || exit 1
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

# three NAME BUDGET EPOCHS COMMAND...: init, profile, run
three() {
	name=$1 budget=$2 epochs=$3
	shift 3
	expect 0 "$name: init" init --yes --name "$name" "$@"
	says out "found as" "$name: its accuracy is found"
	expect 0 "$name: profile" profile "$name-postrider" --no-mixed --budget "$budget"
	says out "at most" "$name: profile says what can be promised"
	expect 0 "$name: run" run "$name-postrider" --slo 10m --epochs "$epochs" --json
	json "$dir/out" "$name: ten minutes are promised" "d['verdict'] == 'promised' and d['job']['state'] == 'done'"
	json "$dir/out" "$name: it learns" "d['job']['accuracy'] > 0.6"
}

if needs torch sklearn; then
	three mnist 25s 6 --factor batch=32,64,128 --factor epochs=1,2,6 -- "$python" mnist.py --batch-size '{batch}' --epochs '{epochs}'
	expect 0 "mnist: without a folder" run --slo 10m -- "$python" mnist.py --batch-size '{batch}' --epochs 3
	says err "the limit of 10 min 00 s will hold" "mnist: its first run says that the limit will hold"
	expect 0 "mnist: again" run --slo 10m -- "$python" mnist.py --batch-size '{batch}' --epochs 3
	says err "is promised" "mnist: the second run is promised"
else
	skipped "PyTorch's example" "needs Debian's python3-torch and python3-sklearn"
fi
if needs sklearn; then
	three mlp 12s 40 --factor batch=16,64,256 --factor epochs=5,10,40 -- "$python" mlp.py --batch-size '{batch}' --epochs '{epochs}'
	three boost 15s 20 --factor batch=350,700,1400 --factor epochs=4,8,20 -- "$python" boost.py --rows '{batch}' --rounds '{epochs}'
else
	skipped "scikit-learn's examples" "needs Debian's python3-sklearn"
fi
finish
