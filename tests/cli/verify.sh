#!/bin/sh
# The simulator is the daemon: a real daemon runs jobs of three types, one of them without a model at first, with chains,
# arrays, chances, failures, repetitions, reloads, a training and a restart; afterwards its decisions are made again from
# its records, and every one has to come out as it did. With BARS=1 there are 300 jobs.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
[ -x "$python" ] || { skipped "verify" "there is no $python"; finish; }
daemon_pid=
stop_daemon() {
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	[ -z "$daemon_pid" ] || wait "$daemon_pid" 2>/dev/null
	daemon_pid=
}
trap 'stop_daemon; sleep 0.3; rm -rf "$dir"' EXIT
rounds=${BARS:+10}
rounds=${rounds:-2}
POSTRIDER_SOCKET=$dir/sock
export POSTRIDER_SOCKET

# job.sh BATCH EPOCHS CODE SIZE: its time goes with size x epochs and falls with the batch
cat >"$dir/job.py" <<'END'
import sys, time
batch, epochs, code, size = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
for e in range(1, epochs + 1):
    time.sleep(size * (0.004 + 0.5 / batch) / 4)
    print('{"epoch":%d,"accuracy":%.4f}' % (e, 0.95 - batch / 4000 - 0.2 / (e + 1)), flush=True)
if code == 7:
    sys.exit("out of memory")
sys.exit(code)
END
"$python" - >"$dir/runs.csv" <<'END'
import random
random.seed(1)
print("size,cpus,njobs,batch,epochs,time_s,accuracy,replication")
for r in range(3):
    for size in (1, 4):
        for epochs in (1, 2, 4, 8):
            for njobs in (1, 2, 4):
                for batch in (16, 64, 256):
                    t = (0.03 + epochs * size * (0.004 + 0.5 / batch) / 4) * (1 + 0.08 * (njobs - 1)) * random.uniform(0.97, 1.03)
                    print("%d,1,%d,%d,%d,%.4f,%.4f,%d" % (size, njobs, batch, epochs, t, 0.95 - batch / 4000 - 0.2 / (epochs + 1) + random.uniform(-.002, .002), r))
END
expect 0 "there is a model" train "$dir/runs.csv" -o "$dir/m.model" --model hybrid --set trees=50 -q

configure() { # SLOTS CONFIDENCE
	cat >"$dir/config.json" <<END
{"socket": "$dir/sock", "socket_mode": "0600", "state_dir": "$dir/state", "model": "$dir/m.model", "cores": 2, "slots": $1,
 "confidence": $2, "learning": {"retrain_after": 0, "promise_after": 3, "min_observations": 30},
 "tenants": {"us": {"users": ["$(id -un)"], "value_budget": 5}},
 "types": {
  "net": {"argv": ["$python", "-S", "-E", "$dir/job.py", "{batch}", "{epochs}", "{code}", "{size}"],
   "params": {"epochs": {"kind": "integer", "min": 1, "max": 8, "default": 2}, "code": {"kind": "integer", "min": 0, "max": 9, "default": 0},
    "size": {"kind": "number", "min": 0.1, "max": 50, "default": 1}}, "batches": [16, 64, 256], "early_stop": true},
  "other": {"argv": ["$python", "-S", "-E", "$dir/job.py", "{batch}", "{epochs}", "0", "{size}"],
   "params": {"epochs": {"kind": "integer", "min": 1, "max": 8, "default": 4}, "size": {"kind": "number", "default": 4}}, "batches": [16, 64, 256]},
  "fresh": {"argv": ["$python", "-S", "-E", "$dir/job.py", "{batch}", "1", "0", "2"], "batches": [32, 128], "first_after": 8}}}
END
}
start_daemon() {
	"$BIN/postriderd" --config "$dir/config.json" >>"$dir/daemon.log" 2>&1 </dev/null &
	daemon_pid=$!
	n=0
	until "$postrider" stats -q >/dev/null 2>&1 || [ $n -ge 200 ]; do
		n=$((n + 1))
		sleep 0.05
	done
}
submit() { id=$("$postrider" submit -q "$@" 2>>"$dir/submit.err"); } # its exit code says what it was promised
one_round() {
	submit net --slo 2s
	submit net --slo 3s --epochs 1..8
	first=$id
	submit net --slo 1s --epochs 2..8 --may-stop
	submit other --slo 2s
	submit fresh --slo 5s
	submit net --slo 0.05s
	submit net --slo 0.12s --chance 0.3
	submit net --array 1-6 --slo 4s --tag "a{index}"
	submit net --after "$first:ok" --slo 2s --epochs 2..4
	submit other --best-effort --slo 0.1s
	submit fresh
	submit net --set code=1
	failed=$id
	submit net --after "$failed:ok" --slo 2s
	submit net --set code=1 --retry 1 --slo 3s
	submit other --slo 3s --value 2
	submit fresh --array 1-3 --slo 5s
	submit other --set size=30 --slo 20s --epochs 1
	submit other --set size=9 --slo 1.5s --confidence 0.99
	submit net --priority -5
	submit net --set size=20 --best-effort --epochs 8
	"$postrider" cancel -q "$id" >/dev/null 2>&1
	sleep 1
	submit net --slo 1s --batches 64,256
	submit net --slo 0.5s --chance 0.5 --epochs 1..4
	"$postrider" wait -q "$first" "$id" >/dev/null 2>&1
}
all_ended() { [ -z "$("$postrider" list -q --all --state queued,running)" ]; }

configure 3 0.9
start_daemon
round=1
while [ $round -le "$rounds" ]; do
	one_round
	case $round in
	1)
		configure 4 0.9
		"$postrider" reload -q >/dev/null 2>&1
		;;
	2)
		submit other --set size=30 --epochs 2
		stop_daemon
		start_daemon
		"$postrider" model retrain >/dev/null 2>&1
		;;
	3)
		configure 2 0.8
		"$postrider" reload -q >/dev/null 2>&1
		;;
	esac
	round=$((round + 1))
done
submit net --slo 2s
submit fresh --slo 3s
submit net --slo 2s --epochs 1..8
n=0
until all_ended || [ $n -ge 300 ]; do
	n=$((n + 1))
	sleep 0.1
done

# ---- the daemon runs, and is not disturbed ----
run replay --from-history "$dir/state" --verify --json
code_is 0 "verify: beside the daemon"
cp "$dir/out" "$dir/verify.json"
json "$dir/verify.json" "verify: all jobs are judged, and 99 % of them agree" "d['judged'] == d['jobs'] and d['share'] >= 0.99"
"$python" - "$dir/verify.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
print("%d of %d jobs agree, %d of %d numbers" % (d["agree"], d["judged"], d["numbers_same"], d["numbers"]))
for x in d["differ"]:
    print(" ", x)
END
stop_daemon
finish
