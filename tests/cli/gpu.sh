#!/bin/sh
# Devices with a real daemon and fake gpus: each job makes a folder for every gpu that it was given and complains if the
# folder is there already, so the jobs themselves say whether a gpu was given to two at once. Nothing here needs a gpu.
. tests/cli/lib.sh

cat >"$dir/use.sh" <<'E'
# use.sh DIR SECONDS GPUS DEVICES BATCH: uses the gpus named in $CUDA_VISIBLE_DEVICES for a while
log=$1/said.$POSTRIDER_JOB
echo "gpus=$3 devices=$4 variable=$CUDA_VISIBLE_DEVICES batch=$5" >"$log"
[ "$4" = "$CUDA_VISIBLE_DEVICES" ] || echo "job $POSTRIDER_JOB: the word and the variable differ" >>"$1/clash"
n=0
mine=
give_back() { for d in $mine; do rmdir "$where/held/$d"; done; }
where=$1
for d in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
	n=$((n + 1))
	mkdir "$1/held/$d" 2>/dev/null && mine="$mine $d" || echo "job $POSTRIDER_JOB: $d is in use" >>"$1/clash"
done
[ "$n" = "$3" ] || echo "job $POSTRIDER_JOB: $n gpus instead of $3" >>"$1/clash"
sleep "$2" &
trap 'kill $!; give_back; exit 143' TERM
wait $!
give_back
echo '{"epoch":4,"accuracy":0.91}'
E
mkdir -m 0777 "$dir/held"
more_config="\"resources\": {\"gpus\": [\"0\", \"GPU-b\", \"2\"], \"gpu_memory_mb\": 16000},"
more_types="\"gpu\": {\"about\": \"wants gpus\", \"batches\": [64, 128, 256, 512],
   \"argv\": [\"/bin/sh\", \"$dir/use.sh\", \"$dir\", \"{nap}\", \"{gpus}\", \"{devices}\", \"{batch}\"],
   \"params\": {\"network\": {\"kind\": \"word\", \"default\": \"simplenet\"}, \"epochs\": {\"kind\": \"integer\", \"default\": 4},
     \"samples\": {\"kind\": \"integer\", \"default\": 12000}, \"nap\": {\"kind\": \"number\", \"default\": 0.1}},
   \"resources\": {\"gpus\": 1, \"max_gpus\": 4, \"records_per_gpu\": 128, \"gpu_memory_mb\": 1000,
     \"gpu_memory_mb_per_record\": 100}},
  \"plain\": {\"batches\": [64], \"argv\": [\"/bin/sh\", \"-c\", \"echo \\\"[\$CUDA_VISIBLE_DEVICES]\\\" {batch}; env >$dir/plain.env\"],
   \"params\": {\"network\": {\"kind\": \"word\", \"default\": \"simplenet\"}, \"epochs\": {\"kind\": \"integer\", \"default\": 4},
     \"samples\": {\"kind\": \"integer\", \"default\": 12000}}},"
slots=8 nap_max=600
. tests/cli/daemon_lib.sh

# A minute instead of ten seconds: many jobs start here, and the machine may be busy.
tried() {
	tries=600
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}
ask() { "$postrider" "$@" --json 2>"$dir/err"; }
# field JOB NAME: a member of the job object
field() { ask status "$1" | "$python" -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]))' "$2"; }
held_are() { [ "$(ls "$dir/held" | wc -l)" -eq "$1" ]; }
all_ended() { [ -z "$("$postrider" list -q --all --state queued,running 2>/dev/null)" ]; }

# ---- one job, what it gets and what is said of it ----
a=$("$postrider" submit gpu -q --set nap=300 --batches 64 2>"$dir/err")
that "a job runs on a gpu" tried test -e "$dir/held/0"
b=$("$postrider" submit gpu -q --set nap=300 --batches 256 2>"$dir/err")
that "a batch of 256 has two, 128 records each" tried test -e "$dir/held/2"
that "the job knows their number and names" grep -q '^gpus=2 devices=GPU-b,2 variable=GPU-b,2 batch=256$' "$dir/said.$b"
that "status names them" test "$(field "$b" devices)" = GPU-b,2
that "and counts them" test "$(field "$b" gpus)" = 2
c=$("$postrider" submit gpu -q --batches 64,512 2>"$dir/err")
says_waiting() { "$postrider" list --all >"$dir/out" 2>&1 && grep -q "0 of 3 gpus are free, it wants 1" "$dir/out"; }
that "list says what a job without one waits for" tried says_waiting
that "list has them beside the cpus" grep -q "1 + 2 gpus" "$dir/out"
"$postrider" stats >"$dir/out" 2>&1
that "stats counts them" grep -q "3 of 3 gpus in use" "$dir/out"
"$postrider" explain "$c" >"$dir/out" 2>&1
that "explain says why a batch is out of the question" grep -q "more gpus than it may have" "$dir/out"
run submit plain --wait -q
code_is 0 "a job that wants none passes those that wait"
that "and sees none" grep -q '^CUDA_VISIBLE_DEVICES=$' "$dir/plain.env"
run submit gpu --gpus 5
code_is 2 "more than the type allows is refused"
says err "gpus: " "and the field is named"
run submit gpu --gpus 4
code_is 3 "more than there are is rejected"
run types
says out "at most 4 on request, one more for every 128 records" "types tells"

# ---- a restart with jobs that run: their gpus stay theirs ----
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_start
that "a waiting job still waits after the restart" tried is_state "$c" queued
d=$("$postrider" submit gpu -q --batches 64 2>"$dir/err")
sleep 1
that "no gpu of a running job is given away" held_are 3
that "and none has started" is_state "$d" queued
"$postrider" cancel -q "$a" >/dev/null 2>&1
that "a gpu that comes back is given to the next" tried is_state "$c" done
"$postrider" cancel -q "$b" >/dev/null 2>&1
that "and to the one behind" tried is_state "$d" done

# ---- many, with a kill in the middle ----
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	"$postrider" submit gpu -q --gpus $((i % 3 + 1)) --batches 64 --set nap=0.3 >>"$dir/many" 2>"$dir/err"
done
sleep 1
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_start
that "sixteen jobs on three gpus all end" tried all_ended
that "each of them well" test "$(for j in $(cat "$dir/many"); do state_of "$j"; done | sort | uniq -c | tr -d ' \n')" = 16done
if [ -e "$dir/clash" ]; then
	not_ok "no gpu was given to two jobs" "$(head -n 1 "$dir/clash")"
else
	ok "no gpu was given to two jobs"
fi
that "all gpus are free" held_are 0

# ---- a reload: a quota, then fewer ----
sed -i 's/"resources": {"gpus": \[/"tenants": {"all": {"max_gpus": 1}}, "default_tenant": "all", &/' "$dir/config.json"
run reload
code_is 0 "a reload brings a quota"
f=$("$postrider" submit gpu -q --batches 64 --set nap=60 2>"$dir/err")
g=$("$postrider" submit gpu -q --batches 64 2>"$dir/err")
says_quota() { "$postrider" list --all >"$dir/out" 2>&1 && grep -q "all may use 0 gpus more, it wants 1" "$dir/out"; }
that "the second job of a tenant that may have one waits" tried says_quota
"$postrider" cancel -q "$f" >/dev/null 2>&1
that "and starts when the first has ended" tried is_state "$g" done
sed -i 's/\["0", "GPU-b", "2"\]/["2"]/' "$dir/config.json"
run reload
code_is 0 "a reload takes two away"
e=$("$postrider" submit gpu -q --batches 64 2>"$dir/err")
that "jobs get the one that is left" tried is_state "$e" done
that "which is the last" grep -q "variable=2 " "$dir/said.$e"

# ---- a configuration that cannot be meant ----
for wrong in '"gpus": -1' '"gpus": ["0", "0"]' '"gpus": ["a,b"]' '"gpus": [""]' '"gpus": "two"' '"gpu_variable": "1X"' '"gpus": 1.5'; do
	echo "{\"resources\": {$wrong}, \"types\": {}}" >"$dir/wrong.json"
	run check-config "$dir/wrong.json"
	code_is 6 "resources: $wrong is refused"
	says err "resources.gpu" "and named"
done
finish
