#!/bin/sh
# postrider-train, the reference training job: small runs end to end, signals, a dead worker, bad input.
. tests/cli/lib.sh
train=$BIN/postrider-train
if [ ! -x "$train" ]; then
	not_ok "there is a training job to test" "$train is missing: make all"
	finish
fi
postrider=$train # what run and expect of lib.sh call
XDG_CACHE_HOME=$dir/cache
export XDG_CACHE_HOME
d=$dir/digits

# field FILE EVENT NAME: a value of the last line of that event
field() { grep "\"event\":\"$2\"" "$1" | tail -n 1 | sed -n "s/.*\"$3\":\([^,}]*\).*/\1/p"; }

expect 0 "digits are drawn" --make-digits "$d" --samples 2000 --test 500 --seed 4
silent out "drawing digits: nothing on stdout"
that "digits: as long as they should be" test "$(wc -c <"$d/train-images-idx3-ubyte")" -eq $((16 + 2000 * 784))
run --make-digits "$dir/again" --samples 2000 --test 500 --seed 4
same "$d/train-images-idx3-ubyte" "$dir/again/train-images-idx3-ubyte" "the same seed draws the same digits"
run --make-digits "$dir/again" --samples 2000 --test 500 --seed 5
that "another seed draws others" sh -c '! cmp -s "$1" "$2"' sh "$d/train-images-idx3-ubyte" "$dir/again/train-images-idx3-ubyte"

# ---- training ----
for network in simplenet lenet5; do
	expect 0 "$network: one worker" --network $network --data "$d" --epochs 3 --batch 32 --lr 0.05 --json
	silent err "$network: nothing to complain of"
	cp "$dir/out" "$dir/one"
	that "$network: a line an epoch and one result" test "$(grep -c '"event":"epoch"' "$dir/one") $(grep -c '"event":"result"' "$dir/one")" = "3 1"
	grep '"event":"result"' "$dir/one" >"$dir/result"
	json "$dir/result" "$network: the result says what was run and what it gave" \
		"d['network'] == '$network' and d['epochs'] == 3 and d['batch'] == 32 and d['samples'] == 2000 and
		 d['workers'] == 1 and d['steps'] == 189 and 0.3 < d['accuracy'] <= 1 and d['elapsed_s'] > 0 and
		 d['max_rss_mb'] > 1 and not d['stopped'] and d['seed'] == 1"
	grep '"event":"epoch"' "$dir/one" | tail -n 1 >"$dir/epoch"
	json "$dir/epoch" "$network: an epoch has its phases" \
		"{'epoch', 'loss', 'accuracy', 'elapsed_s', 'fetch_s', 'compute_s', 'sync_s', 'max_rss_mb'} <= set(d) and
		 d['epoch'] == 3 and d['fetch_s'] > 0 and d['compute_s'] > 0"
	json "$dir/epoch" "$network: processor time is no longer than the time that went by" \
		"0 < d['cpu_s'] <= d['fetch_s'] + d['compute_s'] + d['sync_s'] + 0.1 and 0 < d['test_cpu_s'] <= d['test_s'] + 0.1"
	json "$dir/result" "$network: the job's processor time has that of its epochs in it" \
		"0 < d['start_cpu_s'] and d['cpu_s'] + d['test_cpu_s'] <= d['job_cpu_s'] <= d['elapsed_s'] + 0.1"
	expect 0 "$network: two workers" --network $network --data "$d" --epochs 3 --batch 32 --lr 0.05 --json --workers 2
	cp "$dir/out" "$dir/two"
	grep '"event":"result"' "$dir/two" >"$dir/result"
	json "$dir/result" "$network: of two workers the processor time of one counts" \
		"d['cpu_s'] + d['test_cpu_s'] <= d['job_cpu_s'] and 0 < d['cpu_s'] <= d['fetch_s'] + d['compute_s'] + d['sync_s'] + 0.1"
	that "$network: two workers learn what one does" awk -v a="$(field "$dir/one" epoch loss)" -v b="$(field "$dir/two" epoch loss)" \
		'BEGIN { exit !(a > 0 && a - b < 1e-3 && b - a < 1e-3) }'
	run --network $network --data "$d" --epochs 3 --batch 32 --lr 0.05 --json --workers 2
	that "$network: the same seed gives the same loss to the last digit" \
		test "$(field "$dir/two" result loss)" = "$(field "$dir/out" result loss)"
done
expect 0 "without --json: lines for people" --network simplenet --data "$d" --epochs 1 --workers 3
says out "epoch   1/1" "lines for people: an epoch"
says out "done: simplenet, 3 workers, batch 64, 1 epoch" "lines for people: the result"
expect 0 "--samples takes a part" --network simplenet --data "$d" --epochs 1 --samples 100 --json
that "--samples: fewer steps" test "$(field "$dir/out" result steps)" = 2
expect 0 "--test-every 0 tests at the end only" --network simplenet --data "$d" --epochs 2 --test-every 0 --json
that "--test-every 0: no accuracy after the first epoch" test "$(sed -n '1s/.*"accuracy":\([^,]*\).*/\1/p' "$dir/out")" = null
expect 0 "--link: a step waits for a link" --network simplenet --data "$d" --epochs 1 --samples 100 --link 20 --json
that "--link: as long as the gradients take there and back" awk -v s="$(field "$dir/out" result sync_s)" 'BEGIN { exit !(s >= 0.64) }'
for bad in 0 -1 x 1e9; do
	expect 2 "--link $bad is refused" --link $bad --data "$d"
done
run --network simplenet --data "$d" --epochs 1 --direct-io --json
if [ "$code" -eq 0 ]; then
	ok "--direct-io reads the same"
else
	says err "direct I/O" "--direct-io: said so where the file system has none"
fi
# Few of these: drawing the whole set takes seconds under a sanitizer.
mkdir -p "$XDG_CACHE_HOME/postrider" && cp -r "$d" "$XDG_CACHE_HOME/postrider/digits-1"
expect 0 "without --data: the digits of the cache" --network simplenet --epochs 1 --json
that "without --data: all of them" test "$(field "$dir/out" result samples)" = 2000

# start COMMAND...: a job without end in the background, $pid; returns when it has printed its first line
start() {
	: >"$dir/out" # or the lines of the last run would be taken for its own
	"$@" --network lenet5 --data "$d" --epochs 100000 --json >"$dir/out" 2>"$dir/err" &
	pid=$!
	n=0
	while [ "$(wc -l <"$dir/out")" -lt 1 ] && [ $n -lt 300 ]; do
		sleep 0.1
		n=$((n + 1))
	done
}

# ---- signals ----
# stopped SIGNAL CODE WORKERS
stopped() {
	start "$train" --workers "$3"
	kill "-$1" $pid
	wait $pid
	code=$? ran="--workers $3, then SIG$1"
	code_is "$2" "SIG$1 with $3 workers: exit code $2"
	tail -n 1 "$dir/out" >"$dir/last"
	json "$dir/last" "SIG$1 with $3 workers: the last line is what was reached" \
		"d['event'] == 'result' and d['stopped'] and d['epochs'] >= 1 and 0 < d['accuracy'] <= 1"
	silent err "SIG$1 with $3 workers: no complaint"
}
stopped TERM 143 1
stopped TERM 143 3
if [ -x "$python" ]; then
	# Python can give a child the usual SIGINT, which this shell cannot.
	run_int() {
		"$python" - "$train" "$d" >"$dir/last" 2>"$dir/err" <<'END_PY'
import json, signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "--network", "lenet5", "--data", sys.argv[2], "--epochs", "100000", "--json", "--workers", "2"],
                     stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
p.stdout.readline()
p.send_signal(signal.SIGINT)
lines = p.stdout.read().splitlines()
print(json.dumps({"code": p.wait(), "last": json.loads(lines[-1])}))
END_PY
	}
	run_int
	json "$dir/last" "SIGINT: exit code 130 and a result" "d['code'] == 130 and d['last']['stopped']"
else
	skipped "SIGINT: exit code 130 and a result" "needs $python"
fi

# ---- a worker dies ----
if command -v pgrep >/dev/null; then
	start "$train" --workers 3
	kill -KILL "$(pgrep -P $pid | tail -n 1)"
	wait $pid
	code=$? ran="--workers 3, one of which was killed"
	code_is 1 "a killed worker ends the job"
	says err "was ended by signal 9" "a killed worker: said so"
	start "$train" --workers 3
	children=$(pgrep -P $pid)
	kill -KILL $pid
	wait $pid 2>/dev/null
	sleep 0.5
	left=0
	for child in $children; do
		# A zombie is dead, too, where nobody collects it.
		case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$child/status" 2>/dev/null) in '' | Z | X) ;; *) left=$((left + 1)) ;; esac
	done
	that "workers do not outlive the job" test $left -eq 0
else
	skipped "a killed worker ends the job" "needs pgrep"
fi

# ---- workers on several nodes ----
# Where namespaces may not be made the nodes are the loopback, and only the rate is not tested.
nodes=workloads/nodes.sh
one="$train --network simplenet --data $d --epochs 1 --batch 400 --json -q"
# shellcheck disable=SC2086 # words are meant
if command -v setpriv >/dev/null; then
	$one --workers 3 >"$dir/here" 2>&1
	$nodes spread 3 -- $one >"$dir/loop" 2>"$dir/err"
	that "workers over TCP learn the same to the last digit" \
		test "$(field "$dir/loop" result loss)" = "$(field "$dir/here" result loss)"
	that "workers over TCP: one of them talks" test "$(grep -c '"event":"result"' "$dir/loop")" = 1
	says err "meet on the loopback" "without nodes the workers meet on the loopback, and that is said"
	$nodes --nodes 2 --rate 5mbit -- $nodes spread 2 -- $one >"$dir/links" 2>"$dir/err"
	that "workers on two nodes: a result" test "$(field "$dir/links" result steps)" = 5
	if grep -q "no links of limited rate" "$dir/err"; then
		skipped "links of limited rate cost time" "namespaces may not be made here"
	else
		# 5 steps of a gradient of 407 kB at 5 Mbit/s: 3.3 s. It cannot be faster, on whatever machine.
		that "links of limited rate cost time" \
			awk -v s="$(field "$dir/links" result sync_s)" 'BEGIN { exit !(s > 3) }'
	fi
	start $nodes --nodes 2 --rate 100mbit -- $nodes spread 2 -- "$train"
	kill -TERM $pid
	wait $pid
	code=$? ran="two nodes, then SIGTERM"
	code_is 143 "SIGTERM reaches the workers on all nodes"
	tail -n 1 "$dir/out" >"$dir/last"
	json "$dir/last" "SIGTERM on two nodes: the last line is what was reached" "d['event'] == 'result' and d['stopped']"
	$nodes --nodes 2 -- sh -c 'exit 7' 2>"$dir/err"
	code=$? ran="nodes.sh -- sh -c 'exit 7'"
	code_is 7 "nodes.sh ends as its command does"
	for bad in "--nodes 0 -- true" "--nodes" "--nodes 300 -- true" "stray" "spread 0 -- true" "spread 2 true"; do
		$nodes $bad >/dev/null 2>"$dir/err"
		code=$? ran="nodes.sh $bad"
		code_is 2 "nodes.sh $bad: usage"
	done
else
	skipped "workers on several nodes" "needs setpriv"
fi
peers=127.0.0.1:1,127.0.0.1:2
expect 2 "--peers without --rank" --data "$d" --peers $peers
says err "needs --rank" "--peers without --rank: said so"
expect 2 "--rank without --peers" --data "$d" --rank 1
expect 2 "--peers with --workers" --data "$d" --peers $peers --rank 0 --workers 2
expect 2 "a rank that is not there" --data "$d" --peers $peers --rank 2
expect 1 "an address of another machine" --data "$d" --peers 192.0.2.1:7000,192.0.2.2:7000 --rank 0 -q
says err "is this machine the one that --rank means?" "an address of another machine: said so"

# ---- bad input ----
expect 2 "an unknown network" --network lenet --data "$d"
says err "did you mean lenet5?" "an unknown network: the nearest is named"
expect 2 "a batch larger than the data" --data "$d" --batch 2001
says err "2000 records" "a batch larger than the data: both numbers"
expect 2 "more workers than a batch has records" --data "$d" --batch 4 --workers 5
expect 2 "more samples than there are" --data "$d" --samples 2001
for bad in "--batch 0" "--batch x" "--epochs 0" "--lr 0" "--lr nan" "--decay -1" "--workers 0" "--seed -1" "--test 5" "stray" "--no-such"; do
	# shellcheck disable=SC2086 # words are meant
	expect 2 "$bad: usage" --data "$d" $bad
done
expect 4 "a missing folder" --data "$dir/nowhere"
says err "nowhere" "a missing folder: named"
expect 4 "digits into a missing folder" --make-digits "$dir/no/where" --samples 5 --test 5
expect 1 "a learning rate that diverges" --network simplenet --data "$d" --lr 100000 --epochs 2 --workers 2
says err "learning rate" "a learning rate that diverges: said so"
cp -r "$d" "$dir/bad"
head -c 1000 "$d/train-images-idx3-ubyte" >"$dir/bad/train-images-idx3-ubyte"
expect 6 "a file that was cut" --data "$dir/bad"
says err "cut short" "a file that was cut: said so"
silent out "a file that was cut: nothing on stdout"
cp "$d/train-labels-idx1-ubyte" "$dir/bad/train-images-idx3-ubyte"
expect 6 "labels where pictures should be" --data "$dir/bad"
cp "$d/t10k-images-idx3-ubyte" "$dir/bad/train-images-idx3-ubyte"
expect 6 "fewer pictures than labels" --data "$dir/bad"
says err "500 pictures, but 2000 labels" "fewer pictures than labels: both numbers"
expect 0 "help" --help
says out "--direct-io" "help names the options"

# ---- real MNIST, where `make mnist` put it: the accuracy the paper's runs had, cut to two epochs ----
if [ -r build/mnist/train-images-idx3-ubyte ] && [ -z "${SAN:-}" ]; then
	for network in simplenet lenet5; do
		expect 0 "MNIST: $network" --network $network --data build/mnist --epochs 2 --lr 0.05 --json -q
		that "MNIST: $network gets above 94 % in two epochs at rate 0.05" \
			awk -v a="$(field "$dir/out" result accuracy)" 'BEGIN { exit !(a > 0.94) }'
	done
else
	skipped "accuracy on real MNIST" "make mnist has not been run, or a sanitizer slows it down"
fi
finish
