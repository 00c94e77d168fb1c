#!/bin/sh
# A stranger's own training scripts, from `init` to promises: a Python script that prints text, a shell script, and a
# program with a configuration file. Each goes through init, profile, the daemon and 20 jobs; questions are
# answered in a pseudo-terminal. Needs nothing of this repository but the programs.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

if [ ! -x "$python" ]; then
	skipped "own jobs" "there is no $python"
	finish
fi

# ---- the scripts ----

cat >"$dir/w/train.py" <<'END'
#!/usr/bin/python3 -S
import sys, time
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
batch, epochs = int(a["--batch-size"]), int(a["--epochs"])
print("loading data ...")
for e in range(1, epochs + 1):
    time.sleep(0.005 + 0.32 / batch)
    acc = 100 * (1 - 0.5 / (1 + 8 * e / batch ** 0.5))
    print(f"Epoch {e}/{epochs} - loss: {1 - acc / 100:.4f} - val_acc: {acc:.2f}%", flush=True)
END
cat >"$dir/w/fit.sh" <<'END'
#!/bin/sh
# fit.sh BATCH
i=0
while [ $i -lt $((4000 / $1)) ]; do i=$((i + 1)); : $((i * i)); done
sleep 0.0$((64 / $1 + 1))
echo "done after $i steps"
echo "score <$((99 - $1 / 16))>"
END
cat >"$dir/w/prog" <<'END'
#!/usr/bin/python3 -S
# prog CONFIG [KEY=VALUE...]: settings from a file, overridden on the command line; the result is a JSON line
import json, sys, time
settings = dict(l.split("=") for l in open(sys.argv[1]).read().split())
settings.update(w.split("=") for w in sys.argv[2:])
batch, width = int(settings["batch"]), int(settings["width"])
time.sleep(0.01 + width * 0.01 / batch)
print(json.dumps({"loss": 0.1, "lr": settings.get("lr"), "metrics": {"top1": 0.99 - batch / 1000 + width / 10000}}))
END
printf 'batch=32\nwidth=16\n' >"$dir/w/base.ini"
chmod +x "$dir/w/train.py" "$dir/w/fit.sh" "$dir/w/prog"

# talk FILE-OF-ANSWERS COMMAND...: in a pseudo-terminal, one answer for each question that ends with ": "
cat >"$dir/talk.py" <<'END'
import os, pty, sys, select
answers = open(sys.argv[1]).read().split("\n")
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
while True:
    ready, _, _ = select.select([fd], [], [], 60)
    if not ready:
        sys.exit("no word for a minute: " + seen.decode(errors="replace"))
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    os.write(1, piece)
    seen += piece
    if seen.endswith(b": ") and answers:
        os.write(fd, answers.pop(0).encode() + b"\n")
        seen = b""
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
talk() {
	answers=$1
	shift
	printf '%b' "$answers" >"$dir/answers"
	(cd "$dir/w" && "$python" "$dir/talk.py" "$dir/answers" "$postrider" "$@") >"$dir/out" 2>"$dir/err"
	code=$?
	ran="$*"
}
here() { # postrider in the folder of the scripts
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}

# twenty NAME limit: 20 jobs by the daemon of the user
twenty() {
	n=0
	while [ $n -lt 20 ]; do
		"$postrider" submit "$1" --slo "$2" -q --best-effort >>"$dir/ids" 2>>"$dir/err"
		n=$((n + 1))
	done
	"$postrider" wait --timeout 60s -q >/dev/null 2>&1
	"$postrider" list --json --all --type "$1" >"$dir/jobs.json"
	json "$dir/jobs.json" "$1: 20 more jobs ended well" "sum(j['state'] == 'done' for j in d['jobs']) >= 20"
	json "$dir/jobs.json" "$1: their accuracies were read" \
		"all(0 < j['accuracy'] <= 1 for j in d['jobs'] if j['state'] == 'done')"
	json "$dir/jobs.json" "$1: most of them were promised" \
		"sum(j.get('verdict') == 'promised' for j in d['jobs']) >= 15"
	json "$dir/jobs.json" "$1: nine of ten promises were kept" \
		"sum(j.get('slo_outcome') == 'met' for j in d['jobs'] if j['verdict'] == 'promised') >= 0.9 * sum(j['verdict'] == 'promised' for j in d['jobs'])"
}

# ---- Python, with text and percent: everything is found out ----

here init --yes --json -- ./train.py --batch-size 64 --epochs 4
code_is 0 "python: init"
json "$dir/out" "python: the accuracy is found, in percent" \
	"d['trial']['accuracy_found'] == 'val_acc' and 0.5 < d['trial']['accuracy'] < 1"
says err "--batch-size 64 is taken as {batch}" "python: the batch is found among the options"
says err "--epochs 4 is taken as {epochs}" "python: the epochs, too"
w=$dir/w/train-postrider
that "python: the folder has a description, a configuration and a README" test -s "$w/job.json" -a -s "$w/postrider.json" -a -s "$w/README.md"
expect 0 "python: the configuration is right" check-config "$w/postrider.json" -q
here init --yes -- ./train.py --batch-size 64 --epochs 4
code_is 2 "python: a folder that exists is not written over"

here run train-postrider --slo 5s --dry-run
code_is 6 "python: a question before anything was measured"
says err "there is no model of jobs of type train yet" "python: it says that nothing is known"
expect 9 "python: a limit and no promise is exit code 9" submit train --slo 5s
expect 0 "python: it ends" wait 1 --timeout 90s
sleep 0.5
here run train-postrider --slo 5s
code_is 0 "python: run before anything was measured"
says err "is promised" "python: what one run took is a promise for the second"
says out "val_acc" "python: the output of the command is shown"
expect 0 "python: --best-effort asks for no promise" submit train --slo 5s --best-effort

here profile train-postrider
code_is 0 "python: profile measures and trains"
says out "next  postrider run" "python: profile says what is next"
says err "model of time: " "python: profile says which model it chose"
says err "has the least error on rows held out" "python: profile says why"
from=$(date +%s%N)
here run train-postrider --slo 5s
took=$((($(date +%s%N) - from) / 1000000))
code_is 0 "python: run"
says err "is promised" "python: the third command has a promise"
that "python: from there it took less than 10 s ($took ms)" test "$took" -lt 10000
here run train-postrider --slo 1ms
code_is 3 "python: a limit that cannot be met is exit code 3"
twenty train 5s
expect 0 "python: logs" logs 2 --tail 1
that "python: logs --tail 1 is one line" test "$(wc -l <"$dir/out")" = 1

# ---- looking ----

expect 0 "types" types
says out "a whole number from 1 to 1000000, default 4" "types: the range of a parameter"
expect 4 "a type that is not there" types nope
expect 0 "list --csv" list --csv --all --since 1h
that "list --csv has a header and a row for each job" test "$(wc -l <"$dir/out")" -ge 22
says out ",$(id -un)," "list --csv has names of users"
expect 0 "list --until before everything" list --csv --all --until 2h
that "list --until before everything: no row" test "$(wc -l <"$dir/out")" = 1
expect 0 "reload" reload
expect 0 "drain" drain
expect 8 "a daemon that drains takes no job" submit train --slo 5s
expect 0 "drain --off" drain --off
expect 0 "a job with a tag" submit train --slo 5s --tag mine -q
expect 0 "wait without ids waits for mine" wait
expect 0 "cancel --tag without such a job" cancel --tag mine
says err "no such job of yours" "cancel --tag says that there is none"

# ---- a shell script, a result that only an expression finds: asked in a terminal ----

talk '8,16,32,64\nscore <([0-9]+)>\n1\n' init -- ./fit.sh '{batch}'
code_is 0 "shell: init in a terminal"
says out "no accuracy was found in the output, whose last line is: score" "shell: it says what it did not find"
says out "accuracy  0.9700, found as the regular expression, in percent" "shell: the expression is tried at once"
w=$dir/w/fit-postrider
that "shell: the answers are in the description" grep -q '"batch": \[8, 16, 32, 64\]' "$w/job.json"
here profile fit-postrider -q
code_is 0 "shell: profile"
here run fit-postrider --slo 4s
code_is 0 "shell: run"
says err "is promised" "shell: the third command has a promise"
twenty fit 4s

# ---- measuring that is stopped: what it has is in use ----

cat >"$dir/w/halt.sh" <<'END'
#!/bin/sh
[ ! -e halt.wait ] || sleep 60
sleep 0.05
echo "accuracy 0.$((90 - $1 / 16))"
END
chmod +x "$dir/w/halt.sh"
stop_profile() { # SIGNAL LINES: stops the profile of halt.sh when its journal has so many
	(cd "$dir/w" && exec env --default-signal=INT "$postrider" profile halt-postrider >"$dir/out" 2>"$dir/err") &
	pid=$!
	n=0
	until [ $n -ge 600 ] || [ "$(cat "$dir/w/halt-postrider/runs.csv.profile/journal.jsonl" 2>/dev/null | wc -l)" -ge "$2" ]; do
		n=$((n + 1))
		sleep 0.02
	done
	: >"$dir/w/halt.wait"
	sleep 0.3
	kill "-$1" "$pid"
	wait "$pid"
	code=$? ran="profile, stopped by $1"
	rm -f "$dir/w/halt.wait"
}
here init --yes --factor batch=16,32,64,128 -- ./halt.sh '{batch}'
code_is 0 "stopped: init"
stop_profile KILL 10
that "stopped: a profile that was killed leaves no model" test ! -e "$dir/w/halt-postrider/job.model"
here run halt-postrider --slo 20s
code_is 0 "stopped: run"
says err "has runs that no model was trained on" "stopped: run trains on what was measured"
says err "is promised" "stopped: and has a promise"
here run halt-postrider --slo 20s
that "stopped: once is enough" sh -c "! grep -q 'no model was trained' '$dir/err'"
rm "$dir/w/halt-postrider/job.model"
stop_profile INT 14
code_is 130 "stopped: Ctrl-C is exit code 130"
says err "the same command continues there" "stopped: it says how to go on"
says out "Model written to" "stopped: and trains on what was measured"
here run halt-postrider --slo 20s
says err "is promised" "stopped: which run knows at once"

# ---- a budget is a limit ----

here init --yes --name limit --factor batch=4,8,16 --factor epochs=1,2,400 -- ./train.py --batch-size '{batch}' --epochs '{epochs}'
code_is 0 "budget: init"
from=$(date +%s%N)
here profile limit-postrider --budget 4s
took=$((($(date +%s%N) - from) / 1000000))
code_is 0 "budget: profile"
that "budget: it ends in time, training included ($took ms)" test "$took" -lt 9000
says err "the budget is spent" "budget: it says so"
says out "batch=8 epochs=400 njobs=1: about" "budget: it says how long the longest job takes"
says out "would measure the other" "budget: and what more time would buy"
that "budget: a run that was cut is of the epochs it had" test -z "$(awk -F, '$4 == 400' "$dir/w/limit-postrider/runs.csv")"
here run limit-postrider --slo 60s --epochs 20
says err "is promised" "budget: run has a promise of more epochs than any whole run had"
here profile limit-postrider --budget 4s --executor slurm
code_is 2 "budget: needs this machine"

# ---- a program with a configuration file, a path into its JSON, a factor of its own ----

here init --yes -- ./prog base.ini 'batch={batch}' 'width={width}'
code_is 2 "program: a placeholder without values is asked for"
says err "--factor width=" "program: it says how"
talk '16,32,64\n8,32\nmetrics.top1\n1,2\n' init --name mine -- ./prog base.ini 'batch={batch}' 'width={width}'
code_is 0 "program: init in a terminal"
w=$dir/w/mine-postrider
that "program: the path is in the description" grep -q 'metrics.top1' "$w/job.json"
here profile mine-postrider -q
code_is 0 "program: profile"
that "alone there is nothing to run beside" sh -c "! grep -q beside '$dir/w/train-postrider/runs.csv'"
that "without runs of two jobs there is nothing to compare with" sh -c "! grep -q beside '$dir/w/fit-postrider/runs.csv'"
that "program: profile measures runs beside the others" sh -c "grep -q ',limit,' '$w/runs.csv' && grep -q ',fit,' '$w/runs.csv'"
that "program: the model has them" grep -q MIXD "$w/job.model"
here profile mine-postrider -n
says out "beside" "program: the plan has runs beside others"
says out " fit " "program: and names them"
here profile mine-postrider -n --no-mixed
that "program: --no-mixed leaves them out" sh -c "! grep -q 'beside' '$dir/out'"
here run mine-postrider --slo 4s --set width=32
code_is 0 "program: run with a parameter of its own"
says err "is promised" "program: the third command has a promise"
here run mine-postrider --slo 4s --set width=64
code_is 2 "program: a value that was not measured is refused"
twenty mine 4s

# ---- a learning rate that varies is a factor as any other ----

here init --yes --json --name rate --accuracy metrics.top1 --factor batch=16,64 -- ./prog base.ini 'batch={batch}' 'lr={lr}'
that "rate: it has the usual values" grep -q '"lr": \[0.001, 0.01, 0.1\]' "$dir/w/rate-postrider/job.json"
here profile rate-postrider -q
code_is 0 "rate: profile"
here run rate-postrider --slo 4s --set lr=0.03
code_is 0 "rate: run with a rate between those that were measured"
says err "is promised" "rate: it has a promise"
says out '"lr": "0.03"' "rate: the command gets it"
here run rate-postrider --slo 4s --set lr=0.5
code_is 2 "rate: one that was not measured is refused"

# ---- a command without a folder ----

daemons() { # how many there are of ours
	n=0
	for p in /proc/[0-9]*; do
		if { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "^postriderd --config $dir"; then n=$((n + 1)); fi
	done
	echo $n
}
here run --slo 5s -- ./train.py --batch-size '{batch}' --epochs 2
code_is 0 "command: run"
says err "nothing is known about this command yet" "command: it says so"
says err "trained when it has ended" "command: it says when it will know more"
says err "the next run can have a promise" "command: it says what this run was good for"
says out "Epoch 2/2" "command: its output is shown"
that "command: the socket is in XDG_RUNTIME_DIR" test -S "$XDG_RUNTIME_DIR/postrider-run.sock"
if [ -e /run/postrider/postrider.sock ] || [ -e /etc/postrider/config.json ]; then
	skipped "other verbs find the daemon of run" "the machine has a daemon"
else
	that "other verbs find the daemon of run" env -u POSTRIDER_CONFIG XDG_CONFIG_HOME="$dir/none" sh -c '"$1" types >/dev/null' sh "$postrider"
fi
that "command: its state is in XDG_STATE_HOME" test -d "$XDG_STATE_HOME/postrider/run"
that "one daemon serves all folders and commands" test "$(daemons)" = 1
n=1
while [ $n -lt 3 ]; do
	here run --slo 5s -- ./train.py --batch-size '{batch}' --epochs 2
	n=$((n + 1))
done
says err "is promised" "command: a promise without profile"
n=0
until [ $n -ge 900 ] || "$postrider" types 2>/dev/null | grep -q "its own, from 3 runs"; do
	n=$((n + 1))
	sleep 0.1
done
here run --slo 5s -- ./train.py --batch-size '{batch}' --epochs 2
code_is 0 "command: run with what the daemon learnt by itself"
expect 0 "model list has the types" model list
says out "the first model, from 1 row;" "model list: the daemon trained it from runs alone"

# ---- leaving it alone ----

here run --detach -- ./train.py --batch-size '{batch}' --epochs 2
code_is 0 "detach: run"
that "detach: the id is printed, and nothing else" grep -qx '[0-9]*' "$dir/out"
expect 0 "detach: wait for it" wait "$(cat "$dir/out")" --timeout 90s
cat >"$dir/interrupt.py" <<'END'
# Ctrl-C in a pseudo-terminal, as soon as the command has said something
import os, pty, sys, select
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, sent = b"", False
while True:
    ready, _, _ = select.select([fd], [], [], 30)
    if not ready:
        sys.exit("no word: " + seen.decode(errors="replace"))
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    if b"begun" in seen and not sent:
        os.write(fd, b"\x03")
        sent = True
sys.stdout.write(seen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
(cd "$dir/w" && "$python" "$dir/interrupt.py" "$postrider" run -- sh -c 'echo begun; sleep 60' sh '{batch}') \
	>"$dir/out" 2>"$dir/err"
code=$?
ran="run, interrupted"
code_is 130 "Ctrl-C: exit code 130"
says out "is asked to stop" "Ctrl-C: it says that the job is asked to stop"
run wait --timeout 90s # 1: the job was still being stopped, and was cancelled meanwhile
that "Ctrl-C: nothing goes on" test "$code" = 0 -o "$code" = 1
expect 0 "Ctrl-C: the list" list --state running,queued --json
json "$dir/out" "Ctrl-C: no job is left" "d['jobs'] == []"
that "Ctrl-C: the daemon stays" test "$(daemons)" = 1
here run --idle 1s -- ./train.py --batch-size '{batch}' --epochs 1
code_is 0 "idle: run"
n=0
until [ $n -ge 600 ] || [ "$(daemons)" = 0 ]; do
	n=$((n + 1))
	sleep 0.1
done
that "idle: the daemon has left" test "$(daemons)" = 0
here run --slo 5s -- ./train.py --batch-size '{batch}' --epochs 2
code_is 0 "idle: the next run starts it again"
says err "is promised" "idle: what was learnt is still known"
here run --slo 5s -- sh -c 'exit 7' sh '{batch}'
code_is 7 "command: its exit code is ours"
here run -- ./train.py
code_is 2 "command: without a batch it is refused"

# ---- a batch that the command cannot be run with ----

cat >"$dir/w/fits.py" <<'END'
#!/usr/bin/python3 -S
import sys, time
batch = int(sys.argv[1])
time.sleep(0.01 + 0.32 / batch)
if batch == 256:
    sys.exit("out of memory")
print("val_acc=%.4f" % (0.95 - batch / 2000))
END
chmod +x "$dir/w/fits.py"
failed=0 n=0
while [ $n -lt 14 ]; do
	here run --slo 5s -- ./fits.py '{batch}'
	[ "$code" = 0 ] || failed=$((failed + 1))
	n=$((n + 1))
done
that "a batch that fails is tried once, not again and again" test $failed = 1
n=0
until [ $n -ge 900 ] || "$postrider" types 2>/dev/null | grep -A 4 '^fits' | grep -q "its own, from"; do
	n=$((n + 1))
	sleep 0.1
done
here run --slo 5s -- ./fits.py '{batch}'
says err "is promised" "a batch that fails: the others have a model"
expect 0 "a batch that fails: explain" explain "$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$dir/err" | head -n 1)"
that "a batch that fails is no candidate" sh -c "grep -qE '^ *\\*? +128 ' '$dir/out' && ! grep -qE '^ *\\*? +256 ' '$dir/out'"
here init --yes -- ./fits.py '{batch}'
code_is 0 "a batch that fails: init"
here profile fits-postrider
code_is 1 "a batch that fails: profile says so by its exit code"
says err "no run with batch 256 ended well; 'postrider run' chooses among 16, 32, 64, 128" "a batch that fails: profile says what follows"
here profile fits-postrider --suggest 2
says out "Measure next (" "suggest: the folder says what to measure next"
says out "bound above it" "suggest: by the bounds of the folder's model"
here run fits-postrider --slo 5s
code_is 0 "a batch that fails: run has others"
expect 0 "a batch that fails: check-config of its folder" check-config "$dir/w/fits-postrider/postrider.json" --json
json "$dir/out" "a batch that fails is not in the configuration" "list(d['types'].values())[0]['batches'] == [16, 32, 64, 128]"
stop_daemons
# ---- measuring says what could be promised already ----

here init --yes --name goes --factor batch=4,8,16 --factor epochs=1,2 -- sh -c 'sleep $((6 / {epochs} * {epochs} + {epochs} / 2)); echo "accuracy: 0.{batch}"'
(cd "$dir/w" && exec "$postrider" profile goes-postrider >"$dir/out" 2>"$dir/err") &
profile=$!
n=0
until [ $n -ge 400 ] || grep -q "after [0-9]* of [0-9]* runs" "$dir/err"; do
	n=$((n + 1))
	sleep 0.1
done
kill -9 $profile
says err "epochs=2 njobs=1: about" "as it goes: profile says what could be promised already"
says err ", at most" "as it goes: with a bound"
here run goes-postrider --slo 60s --epochs 2
says err "is promised" "as it goes: what was measured is in use however it ended"

finish
