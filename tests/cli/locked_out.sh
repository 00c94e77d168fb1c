#!/bin/sh
# No command of a user locks out the others: what `run` refuses leaves nothing behind, the number of commands has no
# end, a seed makes no new one, and what the daemon cannot read costs the command it belongs to. BARS=1: 10,000
# commands, and 1,000 hostile ones.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

many=300 hostile=40
if [ -n "${BARS:-}" ]; then
	many=${MANY:-10000} hostile=${HOSTILE:-1000}
elif sanitized; then
	many=262 hostile=10
fi
cat >"$dir/w/fit.sh" <<'END2'
#!/bin/sh
echo "$*" >>said
echo "accuracy: 0.9"
END2
chmod +x "$dir/w/fit.sh"
here() { # postrider in the folder of the script
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}
folders() { find "$own" -maxdepth 1 -type d -name 'fit-*' | wc -l; }
types() { grep -c '"job":' "$own/postrider.json"; }

# ---- values and refusals ----

here run -q --factor data=/data/a,/data/b -- ./fit.sh --batch-size '{batch}' --data '{data}'
code_is 0 "a path is an ordinary value"
that "the command has it" grep -q -- "--data /data/a" "$dir/w/said"
here run -q --set data=/data/b -- ./fit.sh --batch-size '{batch}' --data '{data}'
code_is 0 "and so is another one of the list"
that "the command has that one" grep -q -- "--data /data/b" "$dir/w/said"
here run -q --set data=/etc -- ./fit.sh --batch-size '{batch}' --data '{data}'
code_is 2 "one that is not in the list is refused"
cp "$own/postrider.json" "$dir/before"
here run -q --factor cpus=9999 -- ./fit.sh --batch-size '{batch}' --other
code_is 2 "a value that the daemon refuses is refused"
says err "its cpus are not numbers from 1 to 4096" "it says why"
same "$own/postrider.json" "$dir/before" "and the configuration is as it was"
that "and no folder of the command is left" test "$(folders)" = 1
here run -q --factor cpus=1 -- ./fit.sh --batch-size '{batch}' --other
code_is 0 "the same command with a good value works"
here run -q --cpus 9999 -- ./fit.sh --batch-size '{batch}' --other
that "an option that the daemon refuses is refused" test "$code" -ne 0
here run -q -- ./fit.sh --batch-size '{batch}' --other
code_is 0 "and the command works without it"

# ---- a type that cannot be read ----

bad=$(dirname "$(grep -l -e --other "$own"/fit-*/job.json)")
cp "$bad/job.json" "$dir/job.json"
echo '{"command": [' >"$bad/job.json"
here run -- ./fit.sh --batch-size '{batch}' --third
code_is 0 "a description that was damaged does not stop another command"
says err "does without the command" "it says what was left out"
cp "$dir/job.json" "$bad/job.json"
here run -q -- ./fit.sh --batch-size '{batch}' --other
code_is 0 "a command whose folder was mended returns"
stop_daemons
sleep 0.3
echo damaged >"$bad/job.model"
here run -- ./fit.sh --batch-size '{batch}' --fourth
code_is 0 "nor does a damaged model, when the daemon starts"
says err "does without the command" "it says so, too"
here run -q -- ./fit.sh --batch-size '{batch}' --other
that "the command with the damaged model does not run" test "$code" -ne 0
here run -q -- ./fit.sh --batch-size '{batch}' --third
code_is 0 "and the others go on"
rm "$bad/job.model"

# ---- seeds ----

n=$(types)
for seed in 1 2 007 -3; do
	here run -q -- ./fit.sh --batch-size '{batch}' --seed="$seed" --run_name "a/b $seed"
	code_is 0 "a run with the seed $seed"
	that "it has this seed and this name" grep -q -- "--seed=$seed --run_name a/b $seed\$" "$dir/w/said"
done
that "seeds and names make one type" test "$(types)" = $((n + 1))
"$postrider" list --all --json >"$dir/jobs.json"
json "$dir/jobs.json" "the job says its seed" "any(j['params'].get('typed_seed') == '007' for j in d['jobs'])"
here run -q --dry-run --slo 1m -- ./fit.sh --batch-size '{batch}' --seed=99 --run_name other
code_is 0 "what was learnt from the others counts for the next seed"

# ---- more commands than a configuration has types ----

first() { here run -q "$@" -- ./fit.sh --batch-size '{batch}' --first; }
first
code_is 0 "the first of many"
first --dry-run --slo 1m
code_is 0 "it has a model"
failed=0 i=0
while [ $i -lt $many ]; do
	here run -q -- ./fit.sh --batch-size '{batch}' --number $i
	[ $code -eq 0 ] || failed=$((failed + 1))
	i=$((i + 1))
done
that "$many other commands run ($failed did not: $(last_words))" test $failed = 0
that "the daemon has no more types than it can ($(types))" test "$(types)" -le 256
that "the first of them was forgotten" test -n "$(ls "$own/forgotten")"
first --dry-run --slo 1m
code_is 0 "its model was kept for when it returns"
first
code_is 0 "and it runs"

# ---- hostile commands ----

cat >"$dir/hostile.py" <<'END2'
import os, random, subprocess, sys
random.seed(1)
postrider, n = sys.argv[1], int(sys.argv[2])
bits = ["{batch}", "{data}", "{", "}", "{{", "a" * 5000, "\x01", "\n", "\"", "\\", "'", "\xe4", ",", "=", "--", "-", "", ".",
        "..", "/", "types.fit.job", "//", "*/", "}]}", "nan", "1e999", "-0", "{seed}", "{job}", "{cpus}", "{epochs}"]
opts = ["--factor", "--metric", "--goal", "--set", "--batches", "--cpus", "--epochs", "--tag", "--key", "--idle"]
def junk():
    return "".join(random.choice(bits) for _ in range(random.randint(1, 3)))
bad = 0
for i in range(n):
    words = [postrider, "run", "-q", "--dry-run"] if random.random() < 0.3 else [postrider, "run", "-q"]
    for _ in range(random.randint(0, 3)):
        words += [random.choice(opts), random.choice(["data=", "batch=", "epochs=", "lr=", "cpus=", ""]) + junk()]
    words += ["--", "./fit.sh", "--batch-size", "{batch}"] + [junk() for _ in range(random.randint(0, 3))]
    if random.random() < 0.3:
        words += ["--data", "{data}"]
    got = subprocess.run([os.fsencode(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    good = subprocess.run([postrider, "run", "-q", "--", "./fit.sh", "--batch-size", "{batch}", "--good", str(i % 3)],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if good.returncode:
        bad += 1
        sys.stderr.write("%r (%d) was followed by %d: %s\n" % (words, got.returncode, good.returncode, good.stderr[-300:]))
sys.exit(bad > 0)
END2
if [ -x "$python" ]; then
	(cd "$dir/w" && "$python" "$dir/hostile.py" "$postrider" $hostile) >"$dir/out" 2>"$dir/err"
	code=$?
	that "after each of $hostile hostile commands a good one works ($(head -c 300 "$dir/err"))" test $code = 0
else
	skipped "hostile commands" "needs $python"
fi
finish
