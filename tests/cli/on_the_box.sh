#!/bin/sh
# "The most accurate batch size that ends in time", as commands that a user types, with a script in the style of PyTorch's
# examples: the answer is that of --dry-run and the best by hand for every order of limits, on an idle machine after any
# history, and it says what was passed over, what more time would bring, and what would be in time if shorter.
# typed_numbers.sh and failing_batch.sh have the rest.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

if [ ! -x "$python" ]; then
	skipped "what is on the box" "there is no $python"
	finish
fi

# It sleeps, as a job on a GPU does: other programs hardly disturb it.
cat >"$dir/w/main.py" <<'END_OF_SCRIPT'
import argparse, time
p = argparse.ArgumentParser(description="PyTorch MNIST Example")
p.add_argument("--batch-size", type=int, default=64, metavar="N")
p.add_argument("--epochs", type=int, default=14, metavar="N")
args = p.parse_args()
for epoch in range(1, args.epochs + 1):
    time.sleep(0.02 + 2.0 / args.batch_size)
    right = int(10000 * (1 - 0.6 / (1 + 14 * epoch / args.batch_size ** 0.5)))
    print("Train Epoch: {} [59520/60000 (99%)]\tLoss: 0.08".format(epoch))
    print("\nTest set: Average loss: 0.0483, Accuracy: {}/10000 ({:.0f}%)\n".format(right, right / 100), flush=True)
END_OF_SCRIPT

here() { # postrider in the folder of the script
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}
decided() { # FIELD of the decision in $dir/out
	"$python" -c "import json; print(json.load(open('$dir/out'))['decision']$1)"
}

here init --yes --json --name box --factor epochs=1,2,4 --factor batch=16,64,256 -- python3 main.py --batch-size '{batch}' --epochs '{epochs}'
code_is 0 "init"
# Its model is trained on what the script takes on an idle machine, so that the limits below do not depend on what else runs
# here; the daemon looks at no other programs either.
"$python" - >"$dir/runs.csv" <<'END_OF_TABLE'
import random
random.seed(1)
print("batch,epochs,njobs,cpus,time_s,accuracy")
for _ in range(5):
    for njobs in 1, 2:
        for batch in 16, 64, 256:
            for epochs in 1, 2, 4:
                time = (0.08 + epochs * (0.02 + 2.0 / batch)) * random.gauss(1, 0.04)
                print(batch, epochs, njobs, 1, round(time, 4), round(1 - 0.6 / (1 + 14 * epochs / batch ** 0.5), 4), sep=",")
END_OF_TABLE
model=$dir/box.model
expect 0 "train" train "$dir/runs.csv" --policy postrider -o "$model" -q
POSTRIDER_CONFIG=$dir/own.json
export POSTRIDER_CONFIG
cat >"$dir/own.json" <<END_OF_CONFIG
{"socket": "$dir/own.sock", "socket_mode": "0600", "state_dir": "$dir/own-state", "outside_load": false,
 "types": {"box": {"job": "$dir/w/box-postrider/job.json", "model": "$model"}}}
END_OF_CONFIG
"$BIN/postriderd" --config "$dir/own.json" >"$dir/own.log" 2>&1 &
n=0
until [ $n -ge 200 ] || "$postrider" types >/dev/null 2>&1; do
	n=$((n + 1))
	sleep 0.05
done

# ---- predict and the daemon, before jobs have taught it more than the model knows ----

for epochs in 1 4; do
	here submit box --slo "0.6" --epochs $epochs --dry-run --json
	cp "$dir/out" "$dir/daemon"
	here predict "$model" --job cpus=1,njobs=1,epochs=$epochs --slo "0.6" --json
	json "$dir/out" "$epochs epochs: predict and the daemon answer alike" \
		"(lambda x: (d['chosen'] or {}).get('batch') == (None if x['chosen'] is None else x['candidates'][x['chosen']]['batch']))(json.load(open('$dir/daemon'))['decision'])"
done
here predict "$model" --job "cpus=1,njobs=1000,epochs=1" --slo 10m
code_is 0 "a load far above what was measured is a wider bound, with the daemon as with predict"
here predict "$model" --job "cpus=1,njobs=0.5,epochs=1" --slo 10m
that "less load than was measured is not worth a word" sh -c '! grep -q outside "$1" "$2"' sh "$dir/out" "$dir/err"

# ---- limits in every order ----

# The best by hand: of what is in time the most accurate one; what the model cannot tell apart goes to the faster one. Between
# the dry run and the job other programs may have come or gone: then another set of candidates is in time.
cat >"$dir/by_hand.py" <<'END_OF_SCRIPT'
import json, sys
dry, real = (json.load(open(f)) for f in sys.argv[1:])
def pair(c):
    return c["batch"], c["epochs"]
def good(d):
    return [c for c in d["candidates"] if c["feasible"]]
d, job = real["decision"], real["job"]
if "passed_over" in d:
    sys.exit("passed over on an idle machine: %s" % d["passed_over"])
most = max(c["accuracy"] for c in good(d))
best = min((c for c in good(d) if most - c["accuracy"] <= (d["accuracy_error"] or 0)), key=lambda c: c["time_s"])
if pair(job) != pair(best):
    sys.exit("by hand %s, the job had %s" % (pair(best), pair(job)))
said = dry["decision"]["candidates"][dry["decision"]["chosen"]]
if [*map(pair, good(d))] == [*map(pair, good(dry["decision"]))] and pair(job) != pair(said):
    sys.exit("the dry run says %s, the job had %s" % (pair(said), pair(job)))
END_OF_SCRIPT
# Limits as long as the model says that a fast and a middling pair take, and a bit.
here submit box --slo 10m --dry-run --json
limits=$("$python" -c "
import json
c = sorted(json.load(open('$dir/out'))['decision']['candidates'], key=lambda c: c['upper_s'])
print(round(1.3 * c[1]['upper_s'] + 0.05, 3), round(1.3 * c[5]['upper_s'] + 0.05, 3))")
tight=${limits% *} middle=${limits#* }
for limit in $tight 600 $tight $middle 600 $middle $tight; do
	here submit box --slo "$limit" --dry-run --json
	cp "$dir/out" "$dir/dry"
	here submit box --slo "$limit" --wait --json
	that "limit $limit s: the job has what --dry-run says and what is best by hand" "$python" "$dir/by_hand.py" "$dir/dry" "$dir/out"
done
here submit box --slo 10m --dry-run
says out "batch      16" "with time enough: the most accurate batch"
says out "epochs     4" "and the answer names its epochs"

# ---- what more time would bring, and what would be in time ----

here submit box --slo "$tight" --wait
says out "more time  with " "the answer says what more time would bring"
job=$(sed -n "s/^job \([0-9]*\) admitted.*/\1/p" "$dir/out")
here explain "$job"
says out "more time  with " "explain says it, too"
here submit box --slo "$tight" --dry-run --json
more=$(decided "['with_more_time']['needs_s']")
most=$(decided "['with_more_time']['accuracy']")
here submit box --slo "$("$python" -c "print(1.05 * $more)")" --dry-run --json
json "$dir/out" "with that much time it is promised" \
	"d['verdict'] == 'promised' and d['decision']['candidates'][d['decision']['chosen']]['accuracy'] >= $most - 0.002"
# above the bound of 1 epoch and below the time of 4
here submit box --slo 10m --batches 16 --epochs 1..4 --dry-run --json
least=$("$python" -c "
import json
d = json.load(open('$dir/out'))['decision']['candidates']
print(round((d[0]['upper_s'] + d[-1]['time_s']) / 2, 3))")
here submit box --slo "$least" --epochs 4 --batches 16
code_is 3 "4 epochs are not in time"
says out "the shortest" "the shortest limit is said"
says out "shorter    in time with 16 x " "and what would be in time with fewer epochs"
here submit box --slo "$least" --epochs 4 --batches 16 --dry-run --json
json "$dir/out" "as JSON, too" "d['decision']['shorter']['epochs'] < 4 and d['decision']['shorter']['needs_s'] <= $least"
here submit box --slo "$least" --epochs "$(decided "['shorter']['epochs']")" --batches 16
code_is 0 "with those it is promised"
here submit box --slo 1ms --epochs 4 --dry-run --json
json "$dir/out" "where nothing is in time nothing is said to be" "'shorter' not in d['decision']"

# ---- idle, after a burst ----

for i in 1 2 3 4 5 6 7 8; do
	here submit box --slo $((i % 3 + 1))s --epochs 1..4 -q
done
for id in $("$postrider" list --json 2>/dev/null | "$python" -c "import json, sys; print(*[j['job'] for j in json.load(sys.stdin)['jobs']])"); do
	"$postrider" wait "$id" >/dev/null 2>&1
done
# five of the usual gaps later, which depend on how fast this machine submits
n=0
here submit box --slo 10m --epochs 1..4 --dry-run
while [ $n -lt 30 ] && ! grep -q "batch      16" "$dir/out"; do
	grep -q "^  passed " "$dir/out" || break
	n=$((n + 1))
	sleep 0.5
	here submit box --slo 10m --epochs 1..4 --dry-run
done
says out "batch      16" "idle after a burst: the most accurate batch again"
says out "epochs     4" "with all its epochs"
stop_daemons
finish
