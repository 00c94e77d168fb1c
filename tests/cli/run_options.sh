#!/bin/sh
# `run` has the options of `submit`, keeps what a user adds to the configuration of the daemon, and `page` opens that
# daemon's page. A daemon that has to start again for it does not end a job.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home
unset DISPLAY WAYLAND_DISPLAY
config=$POSTRIDER_CONFIG

cat >"$dir/w/fit.sh" <<'END'
#!/bin/sh
# fit.sh BATCH [SECONDS]
sleep "${2:-0.1}"
echo "accuracy: 0.$1"
END
chmod +x "$dir/w/fit.sh"

options_of() { "$postrider" "$1" --help | grep -oE '^ +(-n, )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u; }
options_of submit >"$dir/submit"
options_of run >"$dir/run"
missing=$(comm -23 "$dir/submit" "$dir/run" | tr '\n' ' ')
if [ "$missing" = "--array --file --jsonl --mode --socket --timeout --wait " ]; then
	ok "run has the options of submit, but those for many jobs and other daemons"
else
	not_ok "run has the options of submit, but those for many jobs and other daemons" "missing: $missing"
fi

cd "$dir/w" || exit 1
expect 4 "page without a daemon says so" page
expect 0 "run --json prints the job" run --json --tag mine --cpus 2 --batches 32,48 --retry 1 -- ./fit.sh '{batch}'
for want in '"state": "done"' '"tag": "mine"' '"cpus": 2' '"batch": 48' '"accuracy": 0.48' '"retry": 1'; do
	if grep -qF "$want" "$dir/out"; then ok "it has $want"; else not_ok "it has $want" "$(tr '\n' ' ' <"$dir/out" | tail -c 300)"; fi
done
expect 2 "a batch in the command and --batches contradict each other" run --batches 32 -- ./fit.sh --batch 48
expect 2 "--dry-run leaves nothing to detach from" run --dry-run --detach -- ./fit.sh '{batch}'
expect 2 "--slo and --deadline contradict each other, as in submit" run --slo 5s --deadline 18:00 -- ./fit.sh '{batch}'
run list --all -q
if [ "$(wc -l <"$dir/out")" -eq 1 ]; then ok "none of these became a job"; else not_ok "none of these became a job" "$(wc -l <"$dir/out") jobs"; fi

# What a user adds stays, there and in a type, and is used.
sed -i 's|"idle_exit_s"|"resources": {"gpus": 1}, "confidence": 0.8, "idle_exit_s"|
	s|"first_after": 1|"first_after": 1, "env": {"KEPT": "yes"}|' "$config"
expect 0 "a machine with a gpu gives it to a job" run --json --gpus 1 -- ./fit.sh '{batch}'
if grep -qF '"gpus": 1' "$dir/out"; then ok "it has it"; else not_ok "it has it" "$(tail -c 300 "$dir/out")"; fi
expect 0 "a second command changes nothing of it" run -q -- /bin/sh -c 'echo accuracy: 0.{batch}'
for want in '"gpus":1' '"confidence": 0.8' '"KEPT":"yes"'; do
	if grep -qF "$want" "$config"; then ok "$want is kept"; else not_ok "$want is kept" "$(tr '\n' ' ' <"$config" | cut -c 1-400)"; fi
done

# A page needs a new daemon; the job that runs goes on.
expect 0 "a longer job" run --detach -q -- ./fit.sh '{batch}' 3
job=$(cat "$dir/out")
expect 0 "page prints its address" page
if grep -qE '^http://127\.0\.0\.1:[0-9]+/#token=prt_' "$dir/out"; then ok "it is of this machine, with a token"; else not_ok "it is of this machine, with a token" "$(cat "$dir/out")"; fi
if [ -x "$python" ]; then
	url=$(sed 's/#.*//' "$dir/out")
	if "$python" -c "import sys, urllib.request as u; sys.exit(b'<html' not in u.urlopen('$url', timeout=10).read())"; then
		ok "the page is there"
	else
		not_ok "the page is there" "$url"
	fi
fi
expect 0 "the job ended well under the new daemon" wait "$job"

# A file that cannot be read is not thrown away.
sed -i 's/^{$/{,/' "$config"
before=$(cksum <"$config")
expect 6 "a configuration that is no JSON is refused" run -q -- ./fit.sh '{batch}'
if [ "$before" = "$(cksum <"$config")" ]; then ok "and left as it is"; else not_ok "and left as it is" "it was changed"; fi
finish
