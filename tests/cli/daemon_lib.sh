# shellcheck shell=sh disable=SC2154 # dir, postrider and BIN are of lib.sh
# Shared by the scripts that need a daemon: read with `. tests/cli/daemon_lib.sh` after lib.sh. It starts the real
# postriderd on a socket in $dir, with job types that sleep and leave with a code of our choice, and stops it at the
# end.
daemon=$BIN/postriderd
daemon_pid=

if [ ! -x "$daemon" ]; then
	not_ok "there is a daemon to talk to" "$daemon is missing: make all"
	finish
fi

cat >"$dir/job.sh" <<'END'
# job.sh SECONDS CODE BATCH: two lines as a training job would write them; CODE 999 dies of a signal
echo '{"epoch":1,"accuracy":0.5}'
sleep "$1" &
trap 'kill $!; exit 143' TERM
wait $!
echo '{"epoch":4,"accuracy":0.91}'
[ "$2" -ne 999 ] || kill -KILL $$
exit "$2"
END
cat >"$dir/config.json" <<END
{"socket": "$dir/postrider.sock", "socket_mode": "0666", "state_dir": "$dir/state", "model": "$dir/m.model",
 "outside_load": ${outside_load:-false}, ${more_config:-} "cores": ${cores:-2}, "slots": ${slots:-2}, "kill_grace_s": 5, "max_queued": 400,
 "types": {
  "nap": {
   "about": "sleeps for a while",
   "argv": ["/bin/sh", "$dir/job.sh", "{nap}", "{code}", "{batch}"],
   "params": {
    "network": {"kind": "word", "values": ["lenet5", "simplenet"], "default": "simplenet"},
    "epochs": {"kind": "integer", "min": 1, "max": 100, "default": 4},
    "samples": {"kind": "integer", "min": 100, "max": 60000, "default": 12000},
    "nap": {"kind": "number", "min": 0, "max": ${nap_max:-60}, "default": 0},
    "code": {"kind": "integer", "min": 0, "max": 999, "default": 0}},
   "cpus": {"min": 1, "max": 2, "default": 1},
   "batches": [64, 128, 256, 512],
   "lr": {"rule": "sqrt", "base": 0.01, "base_batch": 64}},
  ${more_types:-}
  "abroad": {
   "about": "run by its owner",
   "params": {
    "network": {"kind": "word", "default": "simplenet"},
    "epochs": {"kind": "integer", "default": 4},
    "samples": {"kind": "integer", "default": 12000}}}}}
END

# tried CONDITION...: becomes true within ten seconds
tried() {
	tries=100
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

daemon_answers() { "$postrider" stats -q >"$dir/answer" 2>&1; }

daemon_start() {
	"$daemon" --config "$dir/config.json" >>"$dir/daemon.log" 2>&1 </dev/null &
	daemon_pid=$!
	if ! tried daemon_answers; then
		not_ok "the daemon starts" "$(tail -n 1 "$dir/daemon.log")"
		finish
	fi
}

daemon_stop() {
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	[ -z "$daemon_pid" ] || wait "$daemon_pid" 2>/dev/null
	daemon_pid=
}

# Jobs outlive the daemon on purpose, so what still runs is cancelled before it goes.
daemon_clean_up() {
	if [ -n "$daemon_pid" ]; then
		# shellcheck disable=SC2046 # a list of ids is meant
		"$postrider" cancel -q $("$postrider" list -q --all --state queued,running 2>/dev/null) >/dev/null 2>&1
		sleep 0.3
		daemon_stop
	fi
	rm -rf "$dir"
}
trap daemon_clean_up EXIT

# state_of JOB; is_state JOB STATE
state_of() { "$postrider" status -q "$1" 2>/dev/null; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }

# submitted ARGUMENT...: the id of a job of type nap, in $id
# shellcheck disable=SC2034 # the scripts use it
submitted() { id=$("$postrider" submit nap -q "$@" 2>"$dir/err"); }

POSTRIDER_SOCKET=$dir/postrider.sock
export POSTRIDER_SOCKET
if ! "$postrider" train configs/profiles/two-cores/runs.csv -o "$dir/m.model" --model hybrid --set trees=50 -q \
	2>"$dir/err"; then
	not_ok "there is a model for the daemon" "$(last_words)"
	finish
fi
daemon_start
