#!/bin/sh
# status, list, cancel, wait, watch, explain, stats and model, against a real daemon.
# shellcheck disable=SC2086 # lists of ids are meant
. tests/cli/lib.sh
. tests/cli/daemon_lib.sh

run list
code_is 0 "an empty list"
says err "no jobs" "an empty list is said to be one"

submitted --slo 5m --tag first && done_job=$id
tried is_state "$done_job" "done"
submitted --set nap=40 --cpus 2 && long=$id
tried is_state "$long" running
submitted --set nap=1 --slo 5m && queued=$id
submitted --slo 0.001
rejected=$id

# ---- status ----
expect 0 "status of a job that is done" status "$done_job"
says out "job $done_job: done" "its state"
says out "limit met" "the outcome of its limit"
says out "accuracy 0.9100" "its accuracy, from its own output"
# shellcheck disable=SC2317 # called by tried
has_progress() { "$postrider" status "$1" | grep -q progress; }
tried has_progress "$long"
expect 0 "status of a running job" status "$long"
says out "progress    epoch 1 of 4" "its progress"
says out "ends        in " "when it is predicted to end"
expect 0 "status of a queued job" status "$queued"
says out "waits       " "why it waits"
says out "starts      " "when it is predicted to start"
says out "promised" "what it was promised"
run status "$queued" --json
json "$dir/out" "status --json is the job object" \
	"d['job'] == '$queued' and d['state'] == 'queued' and d['estimate']['end_low_s'] <= d['estimate']['end_high_s'] and
	 d['waiting']['code'] == 'slots'"
expect 4 "status of a job that never was" status 999
says err "999" "the job that never was is named"

# ---- list ----
expect 0 "a list" list
that "a list has a header and a line a job" test "$(wc -l <"$dir/out")" -eq 5
that "it has type, epochs, limit and progress" sh -c 'head -n 1 "$1" | grep -q "type .* epochs .* limit .* progress"' sh "$dir/out"
says out "1 of 4" "how far a running job is"
run list -q
that "newest first" test "$(tr '\n' ' ' <"$dir/out")" = "$rejected $queued $long $done_job "
run list -q --state queued,running
that "a list by state" test "$(tr '\n' ' ' <"$dir/out")" = "$queued $long "
run list -q --type abroad
silent out "a list by type"
run list --limit 2
that "a list with a limit" test "$(wc -l <"$dir/out")" -eq 3
says err "there are more" "a list with a limit says that there are more"
run list --jsonl --mine
that "list --jsonl is an object a line" test "$(grep -c '^{"job":"[0-9]*",.*}$' "$dir/out")" -eq 4
run list --json
json "$dir/out" "list --json" "len(d['jobs']) == 4 and d['more'] is False"

# ---- explain ----
expect 0 "explain a job that was rejected" explain "$rejected"
says out "over the limit of 1 ms" "each candidate says why it lost"
says out "the shortest limit that could have been promised" "the shortest limit is told"
expect 0 "explain a job that has run" explain "$done_job"
says out "decided at arrival" "the decision when it arrived"
says out "decided at start" "the decision when it started"
says out "how the estimate moved" "how the estimate moved"
run explain "$done_job" --json
json "$dir/out" "explain --json" \
	"[x['when'] for x in d['decisions']] == ['arrival', 'start'] and len(d['estimates']) >= 1 and d['job']['state'] == 'done'"
expect 4 "explain a job that never was" explain 999

# ---- wait and cancel ----
expect 124 "wait with a timeout" wait "$queued" --timeout 0.3
says err "still queued" "wait with a timeout says what the job does"
expect 3 "wait for a job that was rejected" wait "$rejected"
expect 0 "wait for a job that is done" wait "$done_job"
timeout --preserve-status -s INT 1 "$postrider" wait "$long" >"$dir/out" 2>"$dir/err"
that "Ctrl-C ends a wait with 130" test $? -eq 130
says err "the jobs go on" "Ctrl-C ends the wait, not the job"
that "the job goes on" is_state "$long" running

expect 0 "cancel a running job" cancel "$long"
says out "asked to stop" "a running job is asked to stop"
expect 1 "wait for a cancelled job" wait "$long"
says out "cancelled" "wait says that it was cancelled"
expect 1 "cancel a job that has ended" cancel "$done_job"
expect 4 "cancel a job that never was" cancel 999
submitted --set nap=30 --cpus 2 && blocker=$id
tried is_state "$blocker" running
submitted --set nap=30 && waiting=$id
expect 4 "cancel tries each job" cancel 999 "$waiting" "$blocker"
tried is_state "$blocker" cancelled
that "those that can be cancelled are" is_state "$waiting" cancelled

submitted --set code=15 && five=$id
submitted --set code=16 && six=$id
expect 15 "wait for several: the first exit code that is not 0" wait "$done_job" "$five" "$six"
that "wait for several: a line each" test "$(wc -l <"$dir/out")" -eq 3
run wait "$five" "$six" --json
json "$dir/out" "wait --json" "[j['exit_code'] for j in d['jobs']] == [15, 16]"

# ---- watch ----
submitted --set nap=1 --slo 5m
expect 0 "watch a job until it has ended" watch "$id"
says out "finished: job $id done" "watch prints a line an event"
submitted --set nap=1
expect 0 "watch --jsonl" watch "$id" --jsonl
tail -n 1 "$dir/out" >"$dir/last"
json "$dir/last" "watch --jsonl: the last event" "d['event'] == 'finished' and d['job']['state'] == 'done' and 'at' in d"
expect 124 "watch everything, for a while" watch --timeout 0.3
expect 4 "watch a job that never was" watch 999
if command -v script >/dev/null; then
	submitted --set nap=1
	script -qec "stty cols 60 rows 10; exec $postrider watch $id" "$dir/screen" >"$dir/ignored" 2>&1 </dev/null
	that "on a terminal: the end of the job ends it well" test $? -eq 0
	that "on a terminal: the cursor is hidden and shown again" sh -c \
		"[ \$(grep -c '\\[?25l' '$dir/screen') -ge 1 ] && [ \$(grep -c '\\[?25h' '$dir/screen') -ge 1 ]"
	that "on a terminal: drawn over itself" grep -q '\[[0-9]*A' "$dir/screen"
	{ sleep 1; printf '\003'; sleep 1; } |
		script -qec "$postrider watch" "$dir/screen" >"$dir/ignored" 2>&1
	that "on a terminal: Ctrl-C leaves with 130" test $? -eq 130
	that "on a terminal: Ctrl-C shows the cursor" sh -c "grep -q '\\[?25h' '$dir/screen'"
else
	skipped "watch on a terminal" "needs script(1)"
fi

# ---- logs ----
submitted
logged=$id
tried is_state "$id" "done"
printf 'a \033[31mred\377 \342\200\256back\tcaf\303\251\n' >"$dir/state/jobs/$id/stdout"
run logs "$id"
that "logs into a pipe: all bytes as they are" cmp -s "$dir/out" "$dir/state/jobs/$id/stdout"
submitted --set nap=2 && follow=$id
tried is_state "$follow" running
timeout 30 "$postrider" logs -f "$follow" >"$dir/followed" 2>"$dir/err" &
follower=$!
# shellcheck disable=SC2317 # called by tried
first_line() { grep -q '"epoch":1' "$dir/followed"; }
tried first_line
that "logs -f: the first line is there while the job runs" is_state "$follow" running
wait "$follower"
that "logs -f: leaves with 0 when the job has ended" test $? -eq 0
that "logs -f: shows what was written since" cmp -s "$dir/followed" "$dir/state/jobs/$follow/stdout"
that "logs -f: to the last line" grep -q '"epoch":4' "$dir/followed"
if command -v script >/dev/null; then
	script -qec "$postrider logs $logged" "$dir/screen" >"$dir/shown" 2>&1 </dev/null
	that "logs on a terminal: what it would obey is escaped" grep -qF "$(printf 'a \\x1b[31mred\\xff \\u202eback\tcaf\303\251')" "$dir/shown"
	script -qec "$postrider logs --raw $logged" "$dir/screen" >"$dir/shown" 2>&1 </dev/null
	that "logs --raw on a terminal: all bytes" grep -qF "$(printf '\033[31mred\377')" "$dir/shown"
else
	skipped "logs on a terminal" "needs script(1)"
fi
submitted --set nap=20 --tag "$(printf 'x\342\200\256y')"
run list --all
that "list: a mark that turns the writing round is escaped" grep -qF 'x\u202ey' "$dir/out"

# ---- stats ----
expect 0 "stats" stats
that "promises kept come first" sh -c 'head -n 1 "$1" | grep -q "^promises     [0-9]* of [0-9]* kept"' sh "$dir/out"
that "a lone tenant is not worth a table" sh -c '! grep -q standing "$1"' sh "$dir/out"
that "bounds are told once" sh -c '[ "$(grep -c "within bound" "$1")" -eq 1 ]' sh "$dir/out"
that "a storage that is well is not worth a line" sh -c '! grep -q storage "$1"' sh "$dir/out"
expect 0 "stats -v" stats -v
says out "storage      well" "the storage is well"
says out "within bound" "coverage by confidence"
says out "uid $(id -u)" "who uses the machine"
says out "learning     bounds follow the latest jobs" "whether bounds follow"
run stats --json
json "$dir/out" "stats --json" \
	"d['slo']['met'] >= 2 and d['submissions']['rejected'] == 1 and d['store']['failed'] is False and
	 d['coverage'][0]['confidence'] == 0.9 and d['types'][0]['type'] == 'nap'"

json "$dir/out" "stats --json: tenants and learning" \
	"d['tenants'][0]['weight'] == 1 and d['learning']['adapt'] is True and d['learning']['kept'][0]['confidence'] == 0.9 and
	 'processes' in d['outside']"

# ---- epochs and priorities ----
# all batches by name: jobs that failed above have left one out
expect 0 "open epochs" submit nap --epochs 2..6 --slo 10m --batches 64,128,256,512 --json
json "$dir/out" "open epochs: pairs are looked at, one is chosen" \
	"d['job']['epochs'] in range(2, 7) and d['job']['params']['epochs'] == '2..6' and len(d['decision']['candidates']) == 20 and
	 d['decision']['candidates'][d['decision']['chosen']]['epochs'] == d['job']['epochs']"
id=$("$postrider" list -q --limit 1 2>/dev/null)
tried is_state "$id" "done"
expect 0 "explain a job with open epochs" explain "$id"
says out " epochs" "explain: the epochs of candidates, and of the job"
expect 0 "epochs as a number" submit nap --epochs 3 --json
json "$dir/out" "epochs as a number are not open" "d['job']['epochs'] == 3 and d['job']['params']['epochs'] == 3"
expect 2 "epochs that the type does not allow" submit nap --epochs 90..200
expect 0 "an admin's priority" submit nap --priority 7 --json
json "$dir/out" "an admin's priority is the job's" "d['job']['priority'] == 7"
expect 0 "a job that may stop early" submit nap --may-stop --json
json "$dir/out" "that it may stop is told" "d['job']['may_stop'] is True and d['job']['stopped_epoch'] is None"

# ---- models of the daemon ----
expect 0 "model list" model list
says out "the daemon has trained no model yet" "no model was trained yet"
says out "the configuration's model (version 0) is in use" "the configuration's model is in use"
expect 2 "back to a version that never was" model rollback 7
expect 0 "back to the configuration's model" model rollback 0
says out "the configuration's model is in use again" "back to the configuration's model: it is said"
expect 0 "retrain" model retrain
says out "training has begun" "retrain does not wait"
# shellcheck disable=SC2317 # called by tried
trained() { "$postrider" model list --json >"$dir/models" && grep -q '"training": false' "$dir/models"; }
that "the training ends" tried trained
json "$dir/models" "model list --json" "d['current'] == 0 and d['training'] is False and d['models'][0]['rolled_back_to'] == 0"

# ---- whose jobs ----
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$dir"
	mkdir "$dir/bin" && cp "$BIN/postrider" "$BIN/postrider-lab" "$dir/bin" # where another user can reach them
	other="setpriv --reuid=65534 --regid=65534 --clear-groups $dir/bin/postrider"
	submitted --set nap=20
	$other cancel "$id" >"$dir/out" 2>"$dir/err"
	that "another user's job can not be cancelled: 7" test $? -eq 7
	$other submit abroad --mode advise --priority 7 >"$dir/out" 2>"$dir/err"
	that "a priority is for admins: 7" test $? -eq 7
	says err "only admins" "that a priority is for admins is said"
	$other model retrain >"$dir/out" 2>"$dir/err"
	that "a training is for admins: 7" test $? -eq 7
	$other model list >"$dir/out" 2>"$dir/err"
	that "models can be looked at" test $? -eq 0
	$other status -q "$id" >"$dir/out" 2>"$dir/err"
	that "it can be looked at" test "$(cat "$dir/out")" = running
	chmod 700 "$dir"
	$other status -q "$id" >"$dir/out" 2>"$dir/err"
	that "a socket out of reach: 7" test $? -eq 7
	run cancel "$id"
else
	skipped "another user's job can not be cancelled" "needs root and setpriv(1)"
fi

# ---- the daemon goes away ----
submitted --set nap=3,code=44 && survivor=$id
tried is_state "$survivor" running
"$postrider" wait "$survivor" >"$dir/out" 2>"$dir/err" &
waiter=$!
sleep 0.5
daemon_stop
wait $waiter
that "wait notices that the daemon went away: 5" test $? -eq 5
says err "went away" "wait says that the daemon went away"
expect 5 "without a daemon: 5" list
says err "$dir/postrider.sock" "without a daemon: the socket is named"
daemon_start
expect 44 "after a restart the job is waited for again, and its exit code is there" wait "$survivor"
finish
