#!/bin/sh
# A job that nobody has measured: its epochs are seen as they end, it says when it will end and whether its limit
# will hold, in its first run. The script is a stranger's: it prints "[3/12]", flushes nothing, and starts slowly.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home
unset PYTHONUNBUFFERED

if [ ! -x "$python" ]; then
	skipped "long jobs" "there is no $python"
	finish
fi

cat >"$dir/w/train.py" <<'END'
import sys, time
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
epochs = int(a["--epochs"])
out = sys.stderr if a.get("--to") == "stderr" else sys.stdout
time.sleep(float(a.get("--start", 0.5)))
for e in range(1, epochs + 1):
    time.sleep(0.5)
    out.write(f"[{e}/{epochs}] val_acc={1 - 0.5 / e:.4f}\n")
END
cd "$dir/w" || exit 1

holds() { # claim command...
	claim=$1
	shift
	if "$@"; then ok "$claim"; else not_ok "$claim" "$(cat "$dir/status" "$dir/err" 2>/dev/null | tail -n 3 | tr '\n' ' ')"; fi
}

# Waits for one of the epochs 5 to 9, at most 15 s; progress is told once a second. $dir/status is of then.
gets_going() { # job
	for _ in $(seq 150); do
		"$postrider" status "$1" >"$dir/status"
		grep -q 'progress  *epoch [5-9]' "$dir/status" && return
		sleep 0.1
	done
}

for to in stdout stderr; do
	job=$("$postrider" run --detach -q --slo 5s -- "$python" train.py --batch-size {batch} --epochs 12 --to $to)
	gets_going "$job"
	"$postrider" list --state running >"$dir/list"
	holds "its epochs are seen as they end ($to)" grep -q 'progress  *epoch [5-9] of 12, accuracy 0.[89]' "$dir/status"
	holds "it says when it will end ($to)" grep -Eq 'ends  *in [0-9.]+ m?s \([0-9.]+ m?s to' "$dir/status"
	holds "it says that its limit will not hold ($to)" \
		grep -Eq 'the limit of 5 s will not hold: .* epochs would be in time, or --slo [0-9.]+s' "$dir/status"
	holds "so does list ($to)" grep -Eq 'running .* [0-9]+ of 12 .*in [0-9.]+ m?s \(' "$dir/list"
	"$postrider" wait "$job" >/dev/null 2>&1
done

# `run` itself says it once. Each of these is another command, which nobody has run.
"$postrider" run --slo 5s -- "$python" train.py --batch-size {batch} --epochs 12 --nth 2 >"$dir/out" 2>"$dir/err"
holds "run says so once" test "$(grep -c 'the limit of 5 s will not hold' "$dir/err")" = 1
holds "the output is the command's" test "$(grep -c val_acc "$dir/out")" = 12
"$postrider" run --slo 20s -- "$python" train.py --batch-size {batch} --epochs 12 --nth 3 2>"$dir/err" >/dev/null
holds "run says that a limit will hold" grep -q 'the limit of 20 s will hold' "$dir/err"

# From the second run on there is a promise where the limit is twice what the first took.
took=$(sed -n 's/.* after \([0-9.]*\) s, exit code 0.*/\1/p' "$dir/err")
limit=$(awk -v s="$took" 'BEGIN { print 2 * s "s" }')
"$postrider" run --slo "$limit" -- "$python" train.py --batch-size {batch} --epochs 12 --nth 3 2>"$dir/err" >/dev/null
holds "the second run is promised twice the time of the first" grep -q 'is promised' "$dir/err"
holds "and the promise is kept" grep -q 'limit met' "$dir/err"

# Its epochs are learnt as well as its end: of 12 epochs after a start-up of 3 s two are not a sixth.
set -- "$python" train.py --batch-size {batch} --start 3 --epochs {epochs}
"$postrider" run --slo 60s --epochs 12 -- "$@" 2>"$dir/err" >/dev/null
expect 0 "other epochs are asked for" run --slo 60s --epochs 2 --dry-run --json -- "$@"
json "$dir/out" "their time has the start-up in it, and they are less accurate" \
	"[c for c in d['decision']['candidates'] if 3.3 < c['time_s'] < 5.5 and 0.5 <= c['accuracy'] < 0.85]"

finish
