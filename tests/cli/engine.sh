#!/bin/sh
# Jobs that another program runs: the engine `command` with task-spooler, against a real daemon.
# shellcheck disable=SC2317 # functions are called by `tried` and `that`
. tests/cli/lib.sh
if ! command -v tsp >/dev/null; then
	skipped "jobs at an engine" "task-spooler (tsp) is not installed"
	finish
fi
TS_SOCKET=$dir/tsp.socket
export TS_SOCKET
tsp -S 2
here=$PWD
# A wrapper that notes every submit, and fails as the test says: "no", "later", or "deaf" (takes it, and hangs).
cat >"$dir/submit" <<END
#!/bin/sh
echo "\$*" >>$dir/submits
how=\$(cat $dir/how 2>/dev/null)
case \$how in
no) echo "no such queue" >&2; exit 1 ;;
later) echo "controller is away" >&2; exit 75 ;;
deaf) tsp "\$@"; rm $dir/how; exec sleep 30 ;;
esac
exec tsp "\$@"
END
cat >"$dir/poll" <<END
#!/bin/sh
[ ! -e $dir/mute ] || { echo "controller is away" >&2; exit 1; }
exec $here/configs/engines/tsp-poll
END
chmod +x "$dir/submit" "$dir/poll"
# shellcheck disable=SC2034 # daemon_lib.sh reads it
more_config="\"executor\": \"tsp\", \"engines\": {\"tsp\": {
 \"submit\": [\"$dir/submit\", \"-L\", \"{identity}\", \"-N\", \"{cpus}\", \"{command}\"],
 \"cancel\": [\"$here/configs/engines/tsp-cancel\", \"{id}\"], \"poll\": [\"$dir/poll\"],
 \"poll_s\": 0.3, \"timeout_s\": 2, \"record_grace_s\": 1}},"
. tests/cli/daemon_lib.sh
# The server first: its socket goes with the folder.
trap 'tsp -K 2>/dev/null; daemon_clean_up' EXIT

log_has() { grep -q -- "$1" "$dir/daemon.log"; }
status_has() { "$postrider" status "$1" | grep -q -- "$2"; }
started() { [ -n "$(find "$dir/state/jobs" -name "$1.*.started")" ]; }

# ---- from submit to result ----
submitted --set nap=0.5 --slo 5m
that "a job goes to the engine and is done" tried is_state "$id" "done"
run status "$id"
says out "accuracy 0.9100" "its accuracy comes from its output"
says out "limit met" "and the outcome of its limit from the record of its end"
that "task-spooler ran it" sh -c "tsp | grep -q 'finished.*postrider-supervisor'"
that "and said its id" log_has "job $id is job [0-9]* of engine tsp"
that "which is a clear answer" sh -c "! grep -q 'takes no jobs' $dir/daemon.log"
that "it was submitted once" test "$(wc -l <"$dir/submits")" -eq 1

submitted --set nap=0 --set code=3
that "a job that fails" tried is_state "$id" failed
run status "$id"
says out "exit code 3" "its exit code comes from the record"

submitted --set nap=30
long=$id
that "a long one runs" tried started "$long"
tried status_has "$long" progress
run status "$long"
says out "progress    epoch 1 of 4" "its progress is seen"
expect 0 "it is cancelled" cancel "$long"
that "and ends" tried is_state "$long" cancelled

# ---- refused, away, unsure ----
echo no >"$dir/how"
submitted
that "a job that the engine refuses has failed" tried is_state "$id" failed
run status "$id"
says out "tsp refused it: exit code 1 of submit: no such queue" "and says what the engine said"

echo later >"$dir/how"
submitted
away=$id
that "an engine that is away leaves the job waiting" tried status_has "$away" "waiting for tsp: .*controller is away"
that "the log says so" log_has "engine tsp takes no jobs"
run status "$away" --json
json "$dir/out" "a program can tell" "d['waiting']['code'] == 'engine'"
rm "$dir/how"
that "and it runs when the engine is back" tried is_state "$away" "done"
that "which the log says, too" log_has "engine tsp takes jobs again"

: >"$dir/submits"
echo deaf >"$dir/how"
submitted --set nap=1
that "an engine that takes a job and does not answer: it is done" tried is_state "$id" "done"
that "and was not submitted twice" test "$(wc -l <"$dir/submits")" -eq 1

# ---- the daemon is killed ----
: >"$dir/submits"
submitted --set nap=3
first=$id
submitted --set nap=3
second=$id
that "two jobs run" tried started "$second"
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_start
that "after a kill -9 the jobs are found again" tried is_state "$first" "done"
that "both of them" tried is_state "$second" "done"
that "nothing was submitted twice" test "$(wc -l <"$dir/submits")" -eq 2

# The hand-over is written, the engine has the job, and the daemon is killed before it has the answer.
: >"$dir/submits"
echo deaf >"$dir/how"
submitted --set nap=3
that "a job of which the engine has not said that it has it" tried started "$id"
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
rm -f "$dir/how"
daemon_start
that "is found by its identity" tried is_state "$id" "done"
that "and not submitted again" test "$(wc -l <"$dir/submits")" -eq 1

# The engine never got it, and the next daemon is to run it here.
echo later >"$dir/how"
submitted --set nap=30
that "a job that the engine has not got" tried status_has "$id" "controller is away"
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
rm "$dir/how"
sed -i 's/"executor": "tsp"/"executor": "local"/' "$dir/config.json"
daemon_start
that "runs on this machine when the configuration says so" tried started "$id"
run cancel "$id"
that "and is cancelled here" tried is_state "$id" cancelled
ended() { [ -n "$(find "$dir/state/jobs" -name "$1.*.exit")" ]; }
that "by its supervisor" tried ended "$id"
sed -i 's/"executor": "local"/"executor": "tsp"/' "$dir/config.json"
run reload

# ---- the engine's word, where there is no record ----
submitted --set nap=30
that "a job whose supervisor will be killed" tried started "$id"
supervisor=$(awk '$1 == "supervisor" { print $2 }' "$dir/state/jobs/$id".*.started)
kill -9 "$supervisor"
that "is lost" tried is_state "$id" lost
run status "$id"
says out "tsp says that it is over" "by the word of the engine"

submitted --set nap=2
that "a job runs" tried started "$id"
touch "$dir/mute"
sleep 1
that "a poll that fails means nothing" test "$(state_of "$id")" = running
that "its end is read from the record all the same" tried is_state "$id" "done"
rm "$dir/mute"

# ---- the configuration ----
run check-config "$dir/config.json"
code_is 0 "the configuration is fine"
says out "tsp (command), runs: nap" "and says which types go to the engine"
sed 's/"executor": "tsp"/"executor": "tps"/' "$dir/config.json" >"$dir/bad.json"
expect 6 "an executor that is not there" check-config "$dir/bad.json"
says err "executor: there is no engine 'tps' in \"engines\"; did you mean 'tsp'?" "is named, and the nearest one"
sed "s,$dir/poll,$dir/nowhere," "$dir/config.json" >"$dir/bad.json"
run check-config "$dir/bad.json"
says err "engines.tsp.poll[0]: $dir/nowhere is not a program that may be run" "a program that is not there is an error"
finish
