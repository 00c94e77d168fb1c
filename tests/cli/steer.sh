#!/bin/sh
# A batch that changes while its job runs: a real daemon, scripts in Python and in a shell that ask how to go on, one that
# does not ask, one that does not listen, a daemon that is killed, and none at all.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
[ -x "$python" ] || { skipped "steer" "there is no $python"; finish; }
daemon_pid=
stop_daemon() { # SIGNAL
	[ -z "$daemon_pid" ] || kill "-${1:-TERM}" "$daemon_pid" 2>/dev/null
	[ -z "$daemon_pid" ] || wait "$daemon_pid" 2>/dev/null
	daemon_pid=
}
trap 'stop_daemon; sleep 0.3; rm -rf "$dir"' EXIT
POSTRIDER_SOCKET=$dir/sock
TMPDIR=$dir/tmp
PYTHONPATH=$PWD/python
export POSTRIDER_SOCKET TMPDIR PYTHONPATH
mkdir "$TMPDIR"

# ---- without a daemon ----
line='batch=64 lr=0.01 last=12'
expect 0 "next outside a job answers what it is given" next --start "$line"
that "as it was given" [ "$(cat "$dir/out")" = "$line" ]
expect 4 "and without that it knows no batch" next
expect 2 "a line without a batch is none" next --start lr=0.1
POSTRIDER_START='batch=32 last=3' "$postrider" next >"$dir/out"
that "inside a job it answers what the job was started with" [ "$(cat "$dir/out")" = 'batch=32 last=3' ]
printf '%s\nafter=2\n' 'batch=128 lr=0.5 last=9' >"$dir/next"
POSTRIDER_START='batch=32 last=3' POSTRIDER_NEXT=$dir/next "$postrider" next >"$dir/out"
that "and what the daemon left there, when it has gone" [ "$(cat "$dir/out")" = 'batch=128 lr=0.5 last=9' ]
POSTRIDER_NEXT=$dir/next "$postrider" next --report 2 --accuracy 0.75 >"$dir/out"
that "a report is a line that names the batch that was trained with" \
	[ "$(cat "$dir/out")" = '{"epoch":2,"accuracy":0.75,"batch":128,"asks":true}' ]
echo 'batch=nonsense' >"$dir/next"
POSTRIDER_START='batch=32 last=3' POSTRIDER_NEXT=$dir/next "$postrider" next >"$dir/out"
that "a file that makes no sense is passed over" [ "$(cat "$dir/out")" = 'batch=32 last=3' ]

# ---- jobs ----
# An epoch takes 6.4 s / batch, and more beside a neighbour. Sleeping is the same on every machine.
cat >"$dir/train.py" <<'END'
import os, sys, time
import postrider
import postrider.training
postrider.training.ANSWER_S = 0.5  # the machine that tests may be busy
out, kind = os.path.dirname(os.path.abspath(__file__)), sys.argv[3]
given = int(sys.argv[1])
effective = 0.0

def slower():
    try:
        return float(open(out + "/neighbour").read())
    except (OSError, ValueError):
        return 1.0

with postrider.job(batch=given, epochs=int(sys.argv[2])) as j:
    for epoch in j.epochs():
        batch = given if kind in ("silent", "deaf") else j.batch
        if kind == "deaf":
            j.batch  # it asks, and does not listen
            j._next["batch"] = float(given)
        time.sleep(6.4 / batch * slower())
        effective += batch ** -0.5
        j.report(epoch, accuracy=0.99 - 0.4 / (1 + effective))
END
"$python" - >"$dir/runs.csv" <<'END'
import random
random.seed(1)
print("cpus,njobs,batch,epochs,time_s,accuracy,replication")
for r in range(4):
    for epochs in (4, 8, 12, 16):
        for njobs in (1, 2):
            for batch in (16, 32, 64, 128):
                t = (0.05 + epochs * 6.4 / batch) * random.uniform(0.97, 1.03)
                print("1,%d,%d,%d,%.4f,%.4f,%d" % (njobs, batch, epochs, t, 0.99 - 0.4 / (1 + epochs * batch ** -0.5), r))
END
expect 0 "there is a model" train "$dir/runs.csv" -o "$dir/m.model" --policy postrider -q

cat >"$dir/config.json" <<END
{"socket": "$dir/sock", "socket_mode": "0600", "state_dir": "$dir/state", "model": "$dir/m.model", "cores": 2, "slots": 2,
 "outside_load": false, "durability": "none", "learning": {"retrain_after": 0},
 "types": {
  "net": {"argv": ["$python", "$dir/train.py", "{batch}", "{epochs}", "{kind}"], "steer": true,
   "env": {"PYTHONPATH": "$PYTHONPATH"}, "lr": {"rule": "linear", "base": 0.1, "base_batch": 16},
   "params": {"epochs": {"kind": "integer", "min": 1, "max": 100, "default": 12},
    "kind": {"kind": "word", "values": ["asks", "silent", "deaf"], "default": "asks"}}, "batches": [16, 32, 64, 128]}}}
END
start_daemon() {
	"$BIN/postriderd" --config "$dir/config.json" >>"$dir/daemon.log" 2>&1 </dev/null &
	daemon_pid=$!
	n=0
	until "$postrider" stats -q >/dev/null 2>&1 || [ $n -ge 200 ]; do
		n=$((n + 1))
		sleep 0.05
	done
}
submit() { id=$("$postrider" submit -q "$@" 2>>"$dir/submit.err"); }
job() { # EXPRESSION of j, the job $id
	"$postrider" status "$id" --json >"$dir/out" 2>/dev/null
	"$python" -c "
import json
j = json.load(open('$dir/out'))
j = j['job'] if isinstance(j.get('job'), dict) else j
print($1)"
}
job_is() { # CLAIM EXPRESSION
	got=$(job "$2" 2>&1)
	if [ "$got" = True ]; then
		ok "$1"
	else
		not_ok "$1" "$2 is $got; steered $(job "j.get('steered')" 2>&1)"
	fi
}
until_job() { # EXPRESSION: until it is true, 10 s at most
	n=0
	until [ "$(job "$1" 2>/dev/null)" = True ] || [ $n -ge 100 ]; do
		n=$((n + 1))
		sleep 0.1
	done
}
sqlite_jobs() { "$python" -c "import sqlite3; print(sqlite3.connect('$dir/state/postrider.db').execute('select count(*) from jobs').fetchone()[0])"; }
start_daemon

# ---- late because of a neighbour: it becomes faster, and keeps its word ----
submit net --slo 4s --confidence 0.99
job_is "a job is promised its limit" "j['verdict'] == 'promised'"
echo 1.7 >"$dir/neighbour"
"$postrider" wait -q "$id" >/dev/null 2>&1
rm "$dir/neighbour"
job_is "beside a neighbour its batch has grown" "bool(j['steered']) and j['steered'][-1]['batch'] > j['batch']"
job_is "to keep the promise" "j['steered'][0]['why'] in ('faster', 'late')"
job_is "which it does" "j['slo_outcome'] == 'met'"
job_is "the learning rate goes by the rule of the type" "all(abs(c['lr'] - 0.1 * c['batch'] / 16) < 1e-9 for c in j['steered'])"
"$postrider" list >"$dir/out"
that "the list has the batches in their order" grep -qE '[0-9]+>[0-9]+' "$dir/out"
"$postrider" explain "$id" >"$dir/out"
that "explain says after which epoch and why" grep -qE 'after epoch [0-9]+ .*(promise|late)' "$dir/out"

# ---- scripts that are not steered ----
submit net --slo 4s --confidence 0.99 --set kind=silent
silent=$id
submit net --slo 4s --confidence 0.99 --set kind=deaf
echo 3 >"$dir/neighbour"
"$postrider" wait -q "$silent" "$id" >/dev/null 2>&1
rm "$dir/neighbour"
job_is "a script that does not listen is let go" "j['steered'][-1]['why'] == 'not_followed' and j['steered'][-1]['batch'] == j['batch']"
id=$silent
job_is "a script that never asks is never steered" "j['steered'] is None and j['state'] == 'done'"

# ---- a daemon that is killed, whenever ----
last_told() { job "('%g' % (j['steered'][-1]['batch'] if j['steered'] else j['batch']))"; }
in_file() { sed -n 's/^batch=\([0-9.]*\).*/\1/p' "$dir/state/jobs/$id/next"; }
same=0 went_on=0
for moment in 0.8 1.9 2.7 3.2; do
	submit net --slo 4s --confidence 0.99
	until_job "j['state'] == 'running'"
	echo 3 >"$dir/neighbour"
	sleep "$moment"
	stop_daemon KILL
	epochs=$(grep -c epoch "$dir/state/jobs/$id/stdout")
	before=$(in_file)
	sleep 1.3
	[ "$(grep -c epoch "$dir/state/jobs/$id/stdout")" -gt "$epochs" ] &&
		tail -n 1 "$dir/state/jobs/$id/stdout" | grep -q "\"batch\": $before," && went_on=$((went_on + 1))
	start_daemon
	n=0
	until [ "$(in_file)" = "$(last_told)" ] || [ $n -ge 50 ]; do
		n=$((n + 1))
		sleep 0.02
	done
	[ "$(in_file)" = "$(last_told)" ] && same=$((same + 1))
	"$postrider" wait -q "$id" >/dev/null 2>&1
	rm "$dir/neighbour"
done
that "its jobs go on with the batch that they have ($went_on of 4)" [ "$went_on" -eq 4 ]
that "and the next daemon knows which, and says the same ($same of 4)" [ "$same" -eq 4 ]
job_is "and goes on steering" "j['state'] == 'done'"

# ---- a script in a shell ----
cat >"$dir/train.sh" <<'END'
#!/bin/sh
eval "$("$BIN/postrider" next)"
epoch=0
while [ "$epoch" -lt "$last" ]; do
	epoch=$((epoch + 1))
	sleep "$(echo "$batch" | awk '{ print 6.4 / $1 }')"
	"$BIN/postrider" next --report "$epoch" --accuracy "0.$((80 + epoch))"
	eval "$("$BIN/postrider" next)"
done
END
chmod +x "$dir/train.sh"
sed -i "s|\"$python\", \"$dir/train.py\", \"{batch}\"|\"$dir/train.sh\", \"{batch}\"|; s|\"PYTHONPATH\": \"[^\"]*\"|\"BIN\": \"$BIN\"|" "$dir/config.json"
"$postrider" reload -q
submit net --slo 4s --epochs 4
"$postrider" wait -q "$id" >/dev/null 2>&1
job_is "a script in a shell reports and is answered" "j['state'] == 'done' and abs(j['accuracy'] - 0.84) < 1e-9"
that "with the file of its folder" grep -q '^after=4$' "$dir/state/jobs/$id/next"

# ---- the same decisions from the records ----
stop_daemon
run replay --from-history "$dir/state" --verify
that "the decisions are made again as they were" grep -q "^$(sqlite_jobs) of $(sqlite_jobs) jobs agree" "$dir/out"
that "but for jobs that ran while the daemon was restarted, which is said" \
	grep -q '^not judged: how 4 jobs were steered' "$dir/out"
"$python" - "$dir/state/postrider.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE jobs SET steered=replace(steered,'\"after\":','\"after\":1') WHERE id=1")
db.commit()
END
run replay --from-history "$dir/state" --verify
that "a job that was told otherwise is named" grep -q '^job 1, steering' "$dir/out"

# ---- the scripts of docs/EXAMPLES.md: init finds out that they ask ----
for script in sklearn torch; do
	if "$python" -c "import $script" 2>/dev/null; then
		run init -o "$dir/$script" --factor batch=32,64 --factor epochs=1,2 --factor njobs=1 --yes -- \
			"$python" "$PWD/python/examples/${script}_digits.py" '{batch}' '{epochs}'
		that "init sees that ${script}_digits.py asks" grep -q '^  steer     yes, it asked' "$dir/out"
		that "and its description says so" grep -q '^  "steer": true' "$dir/$script/job.json"
	else
		skipped "${script}_digits.py" "$script is not installed; Debian: python3-$script"
	fi
done
expect 2 "steering needs the epochs" init --steer -o "$dir/none" --yes -- "$python" "$dir/train.py" '{batch}' 4 asks
finish
