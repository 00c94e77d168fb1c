#!/bin/sh
# promises.sh [JOBS]: promises on a real Slurm beside jobs of others (66 jobs), and the starts that we foresee beside those that
# `squeue --start` does, on two queues of the same jobs. Prints `slurm.kept` and `slurm.start_error`.
#
# The jobs sleep for the time that a table says, with noise that the model has seen only in other draws. So what is tested is the
# rest: waits, jobs of others, and how long Slurm takes. Slurm's own forecast rests on time limits, which it counts in minutes.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_start
slots=100 cores=100 more_config='"executor": "slurm",
 "engines": {"slurm": {"poll_s": 1, "look_s": 1, "time_factor": 1, "time_margin_s": 5}},'
more_types='"work": {"argv": ["/bin/sh", "'$dir'/work.sh", "{batch}", "{samples}", "{draw}"], "batches": [64, 128, 256, 512],
  "cpus": {"min": 1, "max": 8, "default": 2},
  "params": {"network": {"kind": "word", "default": "simplenet"}, "epochs": {"kind": "integer", "default": 4},
             "samples": {"kind": "integer", "default": 12000}, "draw": {"kind": "integer", "default": 1}}},'
# time_of BATCH SAMPLES SEED: what the job takes
cat >"$dir/time_of.awk" <<'END'
BEGIN {
	srand(seed * 7919 + batch)
	rand()
	z = sqrt(-2 * log(rand() + 1e-12)) * cos(6.2831853 * rand())
	print (2 + 4 * samples / batch * 0.008) * exp(0.1 * z)
}
END
cat >"$dir/work.sh" <<END
sleep "\$(awk -v batch="\$1" -v samples="\$2" -v seed="\$3" -f $dir/time_of.awk)"
echo '{"epoch":4,"accuracy":0.9}'
END
cluster_daemon
{
	echo "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication"
	for r in 1 2 3; do for c in 1 2 4; do for n in 1 8 16; do for s in 4000 8000 12000; do for b in 64 128 256 512; do
		echo "simplenet,$c,$n,$b,4,$s,$(awk -v batch=$b -v samples=$s -v seed=$((100000 + r * 1000 + c * 100 + n)) \
			-f "$dir/time_of.awk"),$(awk -v b=$b 'BEGIN { print 0.95 - 1e-4 * b }'),$r"
	done; done; done; done; done
} >"$dir/runs.csv"
if ! "$postrider" train "$dir/runs.csv" -o "$dir/m.model" -q 2>"$dir/err"; then
	not_ok "there is a model of these jobs" "$(last_words)"
	finish
fi
run reload
SLURM_PROMISES=${1:-66} "$python" tests/slurm/promises.py "$postrider" "$dir" >"$dir/out" 2>"$dir/err"
code=$?
grep '^slurm\.' "$dir/out"
if [ "$code" -eq 0 ]; then
	ok "promises are kept as often as stated, and starts are foreseen twice as well as by Slurm"
else
	not_ok "promises are kept as often as stated, and starts are foreseen twice as well as by Slurm" \
		"$(tail -n 3 "$dir/err" | tr '\n' '|')"
fi
finish
