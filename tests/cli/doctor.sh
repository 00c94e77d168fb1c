#!/bin/sh
# postrider doctor: what is well, what is worth a look and what is wrong, each said in a sentence and by the exit code.
. tests/cli/lib.sh
unset POSTRIDER_SOCKET POSTRIDER_CONFIG
XDG_STATE_HOME=$dir/state-home XDG_RUNTIME_DIR=$dir/runtime XDG_CONFIG_HOME=$dir/config-home
export XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME
mkdir -p "$XDG_RUNTIME_DIR"

# state CHECK: of the last `doctor`
state() { sed -n "s/^$1  *\([a-z]*\)  .*/\1/p" "$dir/out" | head -n 1; }
is() { # CHECK STATE claim
	if [ "$(state "$1")" = "$2" ]; then ok "$3"; else not_ok "$3" "$1 is '$(state "$1")'; $(cat "$dir/out")"; fi
}

# ---- nothing was done yet ----
expect 0 "a fresh installation" doctor
is programs well "its programs are there"
is machine well "the machine is described"
says out "$(nproc) cpu" "with its cpus"
is settings well "no configuration is needed"
is daemon well "and no daemon has to run"
says out "'postrider run' starts your own" "it is said who starts one"
expect 0 "a fresh installation, as JSON" doctor --json
json "$dir/out" "doctor --json: a list of checks" \
	"d['well'] is True and [c['check'] for c in d['checks']] == ['programs', 'machine', 'settings', 'daemon', 'other work'] and
	 all(c['state'] in ('well', 'note') and c['text'] for c in d['checks'])"
expect 0 "quietly: nothing is wrong" doctor -q
silent out "so nothing is said"
expect 5 "a daemon that was named, and is not there" doctor --socket "$dir/nowhere"
is daemon wrong "is wrong"
says out "$dir/nowhere" "and its socket is named"
expect 2 "no arguments" doctor what

# ---- a program is missing ----
mkdir "$dir/half"
cp "$BIN/postrider" "$BIN/postrider-lab" "$BIN/postrider-automl" "$BIN/postrider-supervisor" "$dir/half"
if [ -x /usr/local/libexec/postrider/postriderd ]; then
	skipped "a program that is missing" "an installation has it"
else
	"$dir/half/postrider" doctor -q >"$dir/out" 2>"$dir/err"
	code=$?
	that "a program is missing: exit code 1" test $code -eq 1
	says out "postriderd is not there" "it is named"
	says out "1 thing is wrong" "and counted"
fi

# ---- configurations ----
mkdir -p "$dir/config-home/postrider"
echo '{"polcy": "postrider"}' >"$dir/config-home/postrider/config.json"
expect 6 "a wrong configuration" doctor
is settings wrong "is wrong"
says out "polcy" "and the key is named"
rm -r "$dir/config-home/postrider"

# ---- a daemon ----
. tests/cli/daemon_lib.sh
POSTRIDER_SOCKET=$dir/postrider.sock POSTRIDER_CONFIG=$dir/config.json
export POSTRIDER_SOCKET POSTRIDER_CONFIG
expect 0 "a daemon that answers" doctor
is daemon well "is well"
says out "answers at $dir/postrider.sock" "where it answers"
is model well "its model is well"
says out "rows at 20" "with what it learnt from"
is promises well "promises are counted"
says out "none has ended yet" "before the first has ended, too"
is settings note "what its configuration allows is worth a look"
says out "everybody on this machine may submit jobs" "and said"
submitted --slo 5m
tried is_state "$id" "done"
run doctor
says out "1 of 1 kept" "a promise that was kept"
# shellcheck disable=SC2016
"$postrider" drain -q >"$dir/ignored" 2>&1
expect 0 "a daemon that drains" doctor
is daemon note "is worth a look"
says out "takes no job: 'postrider drain --off'" "and how it ends is said"
says out "nothing is wrong" "but nothing is wrong"
"$postrider" drain --off -q >"$dir/ignored" 2>&1
mv "$dir/m.model" "$dir/elsewhere.model"
expect 6 "a model that is gone" doctor
is settings wrong "is wrong"
says out "m.model" "and named"
finish
