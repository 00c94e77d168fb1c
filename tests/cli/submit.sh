#!/bin/sh
# postrider submit, against a real daemon.
. tests/cli/lib.sh
. tests/cli/daemon_lib.sh

# ---- one job ----
expect 0 "a job whose limit can be met is admitted" submit nap --set network=lenet5,epochs=4 --slo 5m
says out "job 1 admitted: 5 min 00 s at 90 % is promised" "the verdict and the promise are told"
says out "batch " "the batch is told"
says out "learning rate 0.01" "so is the learning rate that belongs to it"
says out "headroom" "so is the headroom"
silent err "nothing to complain of"
tried is_state 1 "done"
that "the job runs to its end" is_state 1 "done"

expect 3 "a job whose limit can not be met is rejected" submit nap --slo 0.001
says out "rejected: no batch meets 1 ms at 90 %" "a rejected job is told why"
smallest=$(sed -n 's/.*could be promised: //p' "$dir/out" | tr -d ' ')
that "the shortest limit is told" test -n "$smallest"
expect 0 "that one can be promised, as it is typed back" submit nap --slo "$smallest" --dry-run
expect 3 "a hundredth less can not" submit nap --dry-run --slo "$(echo "${smallest%s}" | awk '{ print 0.99 * $1 }')"
expect 0 "with --best-effort it is taken" submit nap --slo 0.001 --best-effort
says out "best effort" "and marked as best effort"
expect 0 "a job without a limit is best effort" submit nap
says out "it has no limit" "and that is told"

expect 0 "a time as we print it is read" submit nap --slo "5 min 00 s" --dry-run
expect 0 "a deadline by the clock" submit nap --deadline "$(date -d '+2 hours' +%H:%M)" --dry-run
expect 2 "a deadline that is none" submit nap --deadline 25:00 --dry-run
says err "write 18:00" "a deadline that is none: what to write"
expect 4 "no such job type" submit quux --dry-run
says err "there are: " "no such job type: those that there are"

before=$("$postrider" list -q --all | wc -l)
expect 0 "a dry run is decided" submit nap --slo 5m --dry-run
says out "it would be admitted" "a dry run says so"
that "a dry run shows every candidate" test "$(grep -cE '^[* ] +(64|128|256|512) ' "$dir/out")" -eq 4
that "a dry run keeps nothing" test "$("$postrider" list -q --all | wc -l)" -eq "$before"

expect 0 "-q" submit nap --slo 5m -q
that "-q prints the id alone" grep -qxE '[0-9]+' "$dir/out"
expect 0 "--json" submit nap --slo 5m --json --tag mine
json "$dir/out" "--json: verdict, job and decision" \
	"d['verdict'] == 'promised' and d['job']['tag'] == 'mine' and d['job']['state'] in ('queued', 'running') and
	 d['decision']['candidates'][d['decision']['chosen']]['batch'] == d['job']['batch'] and 'ok' not in d"
expect 0 "batches to choose from" submit nap --slo 5m --batches 256,512 --json
json "$dir/out" "only they are candidates" "[c['batch'] for c in d['decision']['candidates']] == [256, 512]"
expect 0 "a confidence of its own" submit nap --slo 5m --confidence 95% --json
json "$dir/out" "it is asked for" "d['job']['confidence'] == 0.95 and d['decision']['confidence'] == 0.95"
expect 0 "a deadline" submit nap --deadline "$(date -u -d '+5 minutes' +%Y-%m-%dT%H:%M:%SZ)" --json
json "$dir/out" "a deadline becomes a limit" "290 < d['job']['slo_s'] <= 300"
expect 0 "an advised job" submit abroad --mode advise --slo 5m -q
advised=$(cat "$dir/out")
run status "$advised" --json
json "$dir/out" "an advised job waits for its owner" "d['waiting']['code'] == 'owner' and d['mode'] == 'advise'"

# ---- what is not accepted ----
expect 4 "an unknown job type" submit nep
says err "nap" "an unknown job type: the nearest is named"
expect 2 "an unknown parameter" submit nap --set epoch=4
says err "epochs" "an unknown parameter: the nearest is named"
expect 2 "a parameter out of range" submit nap --set epochs=1000
expect 2 "a parameter of the wrong kind" submit nap --set epochs=four
expect 2 "too many cpus" submit nap --cpus 64
expect 2 "a deadline that is over" submit nap --deadline 2020-01-01T00:00:00Z
expect 2 "a type that is only advised can not be run" submit abroad
silent out "what is not accepted prints nothing on stdout"

# ---- a key ----
expect 0 "a key" submit nap --key night-1 -q
first=$(cat "$dir/out")
expect 0 "the same key again" submit nap --key night-1 -q
that "the same key makes no second job" test "$(cat "$dir/out")" = "$first"
expect 0 "and again, with --wait" submit nap --key night-1 --wait
says out "exists already" "the same key: that is told"
says out "job $first done" "the same key: the first job is waited for"

# ---- files ----
echo '{"type": "nap", "params": {"epochs": 2}, "slo_s": 0.001}' >"$dir/job.json"
expect 3 "a job from a file" submit --file "$dir/job.json"
expect 0 "options win over the file" submit --file "$dir/job.json" --slo 5m --set network=lenet5 --json
json "$dir/out" "the rest is the file's" "d['job']['params']['epochs'] == 2 and d['job']['params']['network'] == 'lenet5'"
echo '{"type": "nap", "slo": 5}' >"$dir/job.json"
expect 6 "an unknown key in a file" submit --file "$dir/job.json"
says err "slo_s" "an unknown key: the nearest is named"
expect 4 "a file that is not there" submit --file "$dir/none.json"

i=0
while [ $i -lt 300 ]; do
	i=$((i + 1))
	echo '{"type": "nap", "slo_s": 100000, "mode": "run", "dry_run": true}'
done >"$dir/dry.jsonl"
expect 0 "three hundred lines" submit --jsonl "$dir/dry.jsonl" --json
that "three hundred lines: an answer each" test "$(wc -l <"$dir/out")" -eq 300
says err "300 jobs: 300 promised" "three hundred lines: a summary"
{
	echo '{"type": "nap", "slo_s": 100000}'
	echo '{"type": "nap", "slo_s": '
	echo
	echo '{"type": "nap", "slo_s": 0.001}'
	echo '{"type": "nope"}'
	echo '{"type": "nap"}'
} >"$dir/some.jsonl"
expect 3 "lines of which one is rejected" submit --jsonl "$dir/some.jsonl" -q
that "an id for each job there is" test "$(grep -cxE '[0-9]+' "$dir/out")" -eq 3
says err "some.jsonl:2:" "a bad line is told with its number"
says err "some.jsonl:5: there is no job type 'nope'" "so is one that the daemon refuses"
grep -v 0.001 "$dir/some.jsonl" >"$dir/less.jsonl"
expect 6 "without a rejected one, the first error's exit code" submit --jsonl "$dir/less.jsonl"
"$postrider" submit --jsonl - -q <"$dir/less.jsonl" >"$dir/out" 2>"$dir/err"
that "lines from standard input" test "$(grep -cxE '[0-9]+' "$dir/out")" -eq 2

# ---- arrays, sequences, repetitions ----
expect 0 "--array" submit nap --array 1-5:2 --set 'code={index}' --tag 'sweep-{index}' -q
that "--array: an id for each number" test "$(grep -cxE '[0-9]+' "$dir/out")" -eq 3
last=$(tail -n 1 "$dir/out")
expect 5 "--array: {index} is the value of a parameter" wait "$last"
expect 0 "--array: the last job" status "$last" --json
json "$dir/out" "--array: index and tag" "d['index'] == 5 and d['tag'] == 'sweep-5'"
expect 2 "--array: not a range" submit nap --array 5-1
expect 2 "--array with one --key for all" submit nap --array 1-2 --key same
expect 2 "--after: not a job" submit nap --after x:ok
expect 4 "--after: a job that is not there" submit nap --after 99999
expect 0 "a job to wait for" submit nap --set nap=1,code=7 -q
first=$(cat "$dir/out")
expect 0 "--after" submit nap --after "$first:ok"
says out "waits until job $first has ended well" "--after says what it waits for"
id=$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$dir/out" | head -n 1)
expect 1 "--after JOB:ok: cancelled where that failed" wait "$id"
expect 0 "--after: status" status "$id"
says out "job $first had to end well first, and it is failed" "--after: the reason"
expect 2 "--after: :ok in the middle" submit nap --after 1:ok,2
expect 0 "two jobs to wait for" submit nap --array 1-2 --set nap=0.3 -q
pair=$(paste -sd, "$dir/out")
expect 0 "--after with several" submit nap --after "$pair:ok" -q
id=$(cat "$dir/out")
expect 0 "--after with several: runs when all have ended well" wait "$id"
expect 0 "--after with several: status" status "$id" --json
json "$dir/out" "--after with several: the list is kept" "[d['after']] + d['after_more'] == '$pair'.split(',') and d['after_ok']"
expect 7 "--retry" submit nap --set code=7 --retry 1 --wait
id=$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$dir/out" | head -n 1)
expect 0 "--retry: status" status "$id"
says out "attempt 2 of 2" "--retry: the attempts are shown"

# ---- waiting ----
expect 0 "--wait until a job is done" submit nap --slo 5m --wait
says out "limit met" "--wait says how it ended"
expect 33 "--wait leaves with the job's exit code" submit nap --set code=33 --wait
expect 1 "--wait: a signal is 1" submit nap --set code=999 --wait
says out "signal 9" "--wait names the signal"
expect 0 "--wait --json" submit nap --slo 5m --wait --json
json "$dir/out" "--wait --json has the job as it ended" "d['job']['state'] == 'done' and d['verdict'] == 'promised'"
expect 124 "--wait with a --timeout" submit nap --set nap=5 --wait --timeout 0.5
says err "it goes on" "--timeout leaves the job alone"
timeout --preserve-status -s INT 1 "$postrider" submit nap --set nap=3 --wait >"$dir/out" 2>"$dir/err"
that "Ctrl-C while waiting leaves with 130" test $? -eq 130
says err "postrider cancel" "Ctrl-C: how to cancel the job is told"
id=$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$dir/out" | head -n 1)
that "Ctrl-C: the job goes on" sh -c "case \$('$postrider' status -q $id) in queued | running) true ;; *) false ;; esac"
finish
