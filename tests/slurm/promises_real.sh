#!/bin/sh
# promises_real.sh [JOBS]: promises about the real training job (24 jobs): it is measured on the cluster, a model is trained on that, and jobs
# with objectives at 0.9 arrive two at a time. Prints `slurm.kept_real`, and claims nothing about it: nodes of this cluster are one machine, whose other
# work the daemon does not see.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
n=${1:-24}
cluster_start
"$BIN/postrider-train" --make-digits "$dir/digits" --samples 2000 --test 200 -q >"$dir/out" 2>"$dir/err"
chmod -R a+rX "$dir/digits"
printf '{"engines": {"slurm": {"poll_s": 0.5, "look_s": 1}}}\n' >"$dir/engine.json"
run profile --executor slurm --config "$dir/engine.json" --factor batch=32,64,128,256 --factor njobs=1,2,3 --factor cpus=1 \
	--factor network=lenet5 --factor epochs=12 --factor samples=2000 --replications 2 --max-spread 0 -o "$dir/runs.csv" -- \
	"$BIN/postrider-train" --network '{network}' --batch '{batch}' --epochs '{epochs}' --samples '{samples}' --data "$dir/digits" --seed '{seed}' --json
code_is 0 "the training job is measured on the cluster"
slots=100 cores=100 more_config='"executor": "slurm", "engines": {"slurm": {"poll_s": 1, "look_s": 1, "time_factor": 2, "time_margin_s": 60}},'
more_types='"digits": {"argv": ["'$BIN'/postrider-train", "--network", "{network}", "--batch", "{batch}", "--epochs", "{epochs}", "--samples", "{samples}",
   "--data", "'$dir'/digits", "--json"], "batches": [32, 64, 128, 256], "cpus": {"min": 1, "max": 1, "default": 1},
  "params": {"network": {"kind": "word", "default": "lenet5"}, "epochs": {"kind": "integer", "default": 12},
             "samples": {"kind": "integer", "default": 2000}}},'
cluster_daemon
"$postrider" train "$dir/runs.csv" -o "$dir/m.model" --policy postrider -q 2>"$dir/err" || not_ok "a model is trained on it" "$(last_words)"
run reload
promised=
asked=0
while [ "$(echo "$promised" | wc -w)" -lt "$n" ] && [ $asked -lt $((3 * n)) ]; do
	asked=$((asked + 2))
	for slo in 4 8; do
		id=$("$postrider" submit digits -q --slo $slo --confidence 0.9 2>>"$dir/err") && promised="$promised $id"
	done
	sleep 2
done
none_left() { [ -z "$("$postrider" list -q --all --state queued,running)" ]; }
that "all have ended" within 200 none_left
"$postrider" list --json --all >"$dir/out"
"$python" -c "import json
jobs = [j for j in json.load(open('$dir/out'))['jobs'] if j['verdict'] == 'promised']
met = sum(j['slo_outcome'] == 'met' for j in jobs)
print(f'slurm.kept_real {met / max(1, len(jobs)):.4f}, {met} of {len(jobs)} promises at 0.9, $asked asked; run',
      ' '.join(f\"{j['run_s']:.1f}\" for j in jobs))
raise SystemExit(len(jobs) < 10)"
code=$?
that "real training jobs are promised" test "$code" -eq 0
finish
