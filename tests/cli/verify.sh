#!/bin/sh
# The simulator is the daemon: a real daemon runs jobs of three types, one of them without a model at first, with chains,
# arrays, chances, failures, repetitions, owners that start their jobs, two reloads, trainings and a restart. Afterwards
# its decisions are made again from its records, and come out as they did. With BARS=1 there are 300 jobs.
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
rounds=${BARS:+6} # of 32 jobs each
rounds=${rounds:-2}
crowd=${BARS:+50} # jobs that come in at once, twice
crowd=${crowd:-20}
POSTRIDER_SOCKET=$dir/sock
TMPDIR=$dir/tmp
export POSTRIDER_SOCKET TMPDIR
mkdir "$TMPDIR"

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
	for limit in 0.06 0.09 0.13 0.2; do # for one of them there is a chance and no promise, however busy the machine is
		submit net --slo "$limit" --chance 0.02 --confidence 0.99
	done
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
# Many at once, for more than the machine can do.
crowd_comes() {
	"$python" - "$1" "$crowd" >"$dir/crowd.jsonl" <<'END'
import json, random, sys
r = random.Random(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    j = {"type": r.choice(["net", "net", "net", "other", "fresh"])}
    if j["type"] != "fresh":
        j["params"] = {"size": r.choice([1, 2, 5, 10, 20])}
        if r.random() < .4:
            j["epochs"] = r.choice(["1..8", "2..4", 3, 5])
    if j["type"] == "net" and r.random() < .1:
        j["params"]["code"] = r.choice([1, 7])
        j["retry"] = r.choice([0, 1])
    if r.random() < .9:
        j["slo_s"] = round(r.choice([.2, .4, .7, 1, 2, 4]) * r.uniform(.7, 1.5), 3)
    if r.random() < .5:
        j["chance"] = r.choice([.1, .3, .6])
    if r.random() < .2:
        j["best_effort"] = True
    if r.random() < .2:
        j["priority"] = r.choice([-3, 4])
    if r.random() < .2:
        j["may_stop"] = True
    print(json.dumps(j))
END
	"$postrider" submit --jsonl "$dir/crowd.jsonl" -q >"$dir/ids" 2>>"$dir/submit.err"
	sleep 0.5
	head -n 2 "$dir/ids" | xargs "$postrider" cancel -q >/dev/null 2>&1
}
# A job that its owner starts, with reports of how far it is.
owner_runs() {
	"$python" - "$dir/sock" <<'END' 2>>"$dir/submit.err"
import json, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
f.readline()
def ask(**q):
    f.write(json.dumps(q) + "\n")
    f.flush()
    return json.loads(f.readline())
job = ask(op="submit", type="net", mode="advise", slo_s=3)["job"]["job"]
time.sleep(.05)
ask(op="started", job=job)
time.sleep(.05)
ask(op="progress", job=job, done=.5)
time.sleep(.05)
ask(op="finished", job=job, exit_code=0, accuracy=.8)
END
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
		crowd_comes 1
		owner_runs
		submit other --set size=30 --epochs 2 # it runs during the restart
		stop_daemon
		start_daemon
		"$postrider" model retrain >/dev/null 2>&1
		;;
	2)
		crowd_comes 2
		configure 2 0.8
		"$postrider" reload -q >/dev/null 2>&1
		;;
	esac
	round=$((round + 1))
done
submit net --slo 2s
submit fresh --slo 3s
n=0
until all_ended || [ $n -ge 600 ]; do
	n=$((n + 1))
	sleep 0.1
done

# ---- what there is to verify ----
"$postrider" list --json --all >"$dir/list.json"
for what in "verdict promised" "verdict best_effort" "verdict chance" "verdict rejected" "state failed" "state cancelled" "mode advise"; do
	json "$dir/list.json" "some jobs have the ${what% *} ${what#* }" \
		"any(j['${what% *}'] == '${what#* }' for j in d['jobs'])"
done
json "$dir/list.json" "jobs of one type ran without a model, and with one that was trained meanwhile" \
	"len({j['model'] for j in d['jobs'] if j['type'] == 'fresh' and j['batch']}) >= 2"
[ -z "${BARS:-}" ] || json "$dir/list.json" "there are 300 jobs" "len(d['jobs']) >= 280"

# ---- beside the daemon, and without it ----
verify() { run replay --from-history "$1" --verify --json; }
verify "$dir/state"
code_is 0 "verify: beside the daemon"
cp "$dir/out" "$dir/verify.json"
json "$dir/verify.json" "verify: all jobs are judged, and 99 % of them agree" "d['judged'] == d['jobs'] and d['share'] >= 0.99"
json "$dir/verify.json" "verify: so do the numbers behind the decisions" "d['numbers_same'] >= 0.99 * d['numbers'] > 500"
json "$dir/verify.json" "verify: every job that differs has a reason" "all(x['why'] and x['why'] != 'not known' for x in d['differ'])"
"$python" -c 'import json, sys
d = json.load(open(sys.argv[1]))
print("   %d of %d jobs agree, %d of %d numbers" % (d["agree"], d["judged"], d["numbers_same"], d["numbers"]), *d["differ"], sep="\n   ")' "$dir/verify.json"
stop_daemon
find "$dir/state" -maxdepth 1 -type f -exec cksum {} + | sort >"$dir/before"
expect 0 "verify: at least 99 % is asked for" replay --from-history "$dir/state" --verify --at-least 99%
says out "jobs agree" "verify: the counts are printed"
find "$dir/state" -maxdepth 1 -type f -exec cksum {} + | sort >"$dir/after"
same "$dir/before" "$dir/after" "verify: the state folder is as it was"

# ---- records that were changed show as what they are ----
# changed CLAIM SQL EXPRESSION: of a copy of the database
changed() {
	rm -rf "$dir/copy"
	mkdir "$dir/copy"
	cp "$dir/state/postrider.db" "$dir/copy/"
	"$python" -c 'import sqlite3, sys
d = sqlite3.connect(sys.argv[1])
d.executescript(sys.argv[2])
d.commit()' "$dir/copy/postrider.db" "$2" || not_ok "$1" "the database could not be changed"
	verify "$dir/copy"
	json "$dir/out" "$1" "$3"
}
changed "changed: without changes the copy agrees as well" "SELECT 1" "d['share'] >= 0.99"
changed "changed: another verdict" \
	"UPDATE jobs SET verdict='promised' WHERE id=(SELECT min(id) FROM jobs WHERE verdict='best_effort' AND type='net')" \
	"len(d['differ']) == 1 and d['differ'][0]['recorded']['verdict'] == 'promised' and d['differ'][0]['replayed']['verdict'] == 'best_effort'"
changed "changed: another limit is another time left" \
	"UPDATE jobs SET slo_s=0.01 WHERE id=1" \
	"d['differ'][0]['job'] == '1' and 'seconds left' in d['differ'][0]['why'] and d['share'] > 0.5"
changed "changed: other load that nobody recorded" \
	"UPDATE inputs SET text='0:7' WHERE what='loads'" \
	"any('other load' in x['why'] for x in d['differ']) or d['numbers_same'] < d['numbers']"
changed "changed: a choice that nobody made" \
	"UPDATE decisions SET json=replace(json, '\"chosen\":0', '\"chosen\":1') WHERE job=1 AND moment='start'" \
	"d['agree'] == d['judged'] - 1 and d['differ'][0]['moment'] == 'start'"
changed "changed: without the ends of jobs the numbers differ" "DELETE FROM inputs WHERE what='ended'" \
	"d['numbers_same'] < 0.9 * d['numbers']"
changed "changed: a damaged record ends it until the next start" "UPDATE inputs SET text='{' WHERE what='reloaded'" \
	"d['judged'] < d['jobs'] and 'inputs' in d['not_judged']['gaps'][0]['why']"
changed "changed: without records nothing is judged" "DELETE FROM inputs" \
	"d['judged'] == 0 and d['share'] is None and d['not_judged']['before_records'] == d['jobs']"
expect 1 "changed: and no share is reached" replay --from-history "$dir/copy" --verify --at-least 50%
says out "not judged" "changed: it says so"
mv "$dir/m.model" "$dir/m.gone"
verify "$dir/state"
json "$dir/out" "a model that is gone is named" "'m.model' in d['not_judged']['gaps'][0]['why'] and d['not_judged']['gaps'][0]['jobs'] > 0"
mv "$dir/m.gone" "$dir/m.model"

# ---- what is not a state folder ----
expect 4 "no such folder" replay --from-history "$dir/nowhere" --verify
mkdir "$dir/empty"
expect 4 "a folder without a database" replay --from-history "$dir/empty" --verify
echo "this is no database, and long enough to be none for sure" >"$dir/empty/postrider.db"
expect 6 "a file that is no database" replay --from-history "$dir/empty" --verify
head -c 20000 "$dir/state/postrider.db" >"$dir/empty/postrider.db"
expect 6 "a database that was cut" replay --from-history "$dir/empty" --verify
expect 2 "usage: a policy with --verify" replay --from-history "$dir/state" --verify --policy postrider
expect 2 "usage: --at-least without --verify" replay --from-history "$dir/state" --at-least 0.5 --policy postrider --world fluid
expect 2 "usage: --verify without a history" replay --verify
that "the folders of the replays are removed" rmdir "$TMPDIR"
finish
