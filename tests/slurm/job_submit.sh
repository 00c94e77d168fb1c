#!/bin/sh
# configs/slurm/job_submit.lua in a real slurmctld: it fills in batch and time limit, and refuses what cannot be in time.
# shellcheck disable=SC2317,SC2154,SC2034,SC2016 # functions are called by others; variables are of the libraries, or of scripts
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
if ! find /usr/lib -name job_submit_lua.so 2>/dev/null | grep -q .; then
	skipped "the job_submit plugin" "this Slurm has no job_submit_lua.so"
	finish
fi
more_slurm_conf='JobSubmitPlugins=lua'
mkdir -p "$S"
cp configs/slurm/job_submit.lua "$S/"
POSTRIDER=$postrider
POSTRIDER_SOCKET=$dir/postrider.sock
POSTRIDER_TIMEOUT=8 # a busy machine; sbatch waits for 10 s
export POSTRIDER POSTRIDER_SOCKET POSTRIDER_TIMEOUT
cluster_start
slots=20 cores=20 more_config='"executor": "slurm", "engines": {"slurm": {"look_s": 0}},'
cluster_daemon
printf '#!/bin/sh\necho "batch $POSTRIDER_BATCH" >%s/batch.$SLURM_JOB_ID\n' "$dir" >"$dir/own.sh"
chmod 755 "$dir"
own() { # ARGUMENT...: of sbatch; what it says is in err, the number in out
	sbatch --parsable --chdir=/ --output=/dev/null "$@" "$dir/own.sh" >"$dir/out" 2>"$dir/err"
}
limit() { squeue -h -t all -j "$(cat "$dir/out")" -o %l; }
batch_is() { grep -qsx -- "$1" "$dir/batch.$(cat "$dir/out")"; }

that "a job whose comment asks for it is taken" own --comment="postrider nap network=simplenet samples=12000 slo=20m"
that "and has a time limit from our bound" test "$(limit)" = "$("$postrider" submit nap -n --json -q --slo 20m |
	"$python" -c 'import json, math, sys
d = json.load(sys.stdin)["decision"]
m = max(1, math.ceil(d["candidates"][d["chosen"]]["upper_s"] / 60))
print("%d:00" % m)')"
that "its script finds the batch" tried batch_is "batch \(64\|128\|256\|512\)"
that "a limit that is given stays" own --time=7 --comment="postrider nap slo=20m"
that "as it was given" test "$(limit)" = 7:00
that "what cannot be in time is refused" sh -c "! sbatch --chdir=/ --output=/dev/null \
	--comment='postrider nap network=lenet5 slo=1s' $dir/own.sh 2>$dir/err"
says err "postrider: it cannot be in time; " "with what could be promised"
for bad in 'postrider nap network=$(touch${IFS}'"$dir"'/pwned)' 'postrider nap;touch slo=1' 'postrider ' "postrider nap 'x'=1"; do
	own --comment="$bad"
done
that "a comment is no command" test ! -e "$dir/pwned"
sbatch --chdir=/ --output=/dev/null --comment='postrider nosuchtype slo=5m' "$dir/own.sh" >"$dir/out" 2>"$dir/err"
says err "nosuchtype" "a type that is not there is refused by name"
that "jobs without such a comment are as ever" own --comment="anything else"
that "without a batch" tried batch_is "batch "
run submit nap -q
id=$(cat "$dir/out")
that "the daemon's own jobs pass" tried is_state "$id" "done"
daemon_stop
that "without the daemon a job is taken as it is" own --comment="postrider nap slo=20m"
finish
