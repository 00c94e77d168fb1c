# shellcheck shell=sh
# Shared by the scripts of this folder, which read it with `. tests/cli/lib.sh` from the root of the
# repository. BIN is the folder of the built programs.
#
# A script makes claims; each prints one line "ok - CLAIM", "not ok - CLAIM (why)" or
# "skipped - CLAIM (reason)". `finish` ends it with the right status.
set -u
LC_ALL=C
export LC_ALL
unset SOURCE_DATE_EPOCH POSTRIDER_THREADS NO_COLOR
BIN=${BIN:-$PWD/build}
postrider=$BIN/postrider
python=/usr/bin/python3
failures=0

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

if [ ! -x "$postrider" ]; then
	echo "not ok - there is a program to test ($postrider is missing: make all)"
	exit 1
fi

ok() { echo "ok - $1"; }
not_ok() { # claim why
	echo "not ok - $1 ($2)"
	failures=$((failures + 1))
}
skipped() { echo "skipped - $1 ($2)"; }
# sanitized: a sanitizer looks on, and not `make asan-full` asks for everything (tests/run.sh says what is left out, and why)
sanitized() { [ -n "${SAN:-}" ] && [ -z "${FULL:-}" ]; }
finish() { [ "$failures" -eq 0 ]; exit; }

# own_home: a user's own daemon, as `run` starts it, has its state and its socket below $dir, and ends with the script.
# $own is the folder of its configuration, $dir/w one to work in.
own_home() {
	XDG_STATE_HOME=$dir/state-home
	XDG_RUNTIME_DIR=$dir/runtime
	own=$XDG_STATE_HOME/postrider/run
	POSTRIDER_CONFIG=$own/postrider.json
	export XDG_STATE_HOME XDG_RUNTIME_DIR POSTRIDER_CONFIG
	unset POSTRIDER_SOCKET
	mkdir -p "$XDG_RUNTIME_DIR" "$dir/w"
	trap 'stop_daemons; sleep 0.3; rm -rf "$dir"' EXIT
}
# stop_daemons: those whose configuration is below $dir
stop_daemons() {
	for p in /proc/[0-9]*; do
		if { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "postriderd --config $dir"; then
			kill "${p#/proc/}" 2>/dev/null
		fi
	done
}

# run ARGUMENT...: postrider with them; its status is then in $code, its words in $dir/out and $dir/err
run() {
	"$postrider" "$@" >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}

last_words() { tail -n 1 "$dir/err" | cut -c 1-200; }

# code_is CODE CLAIM: of the last run
code_is() {
	if [ "$code" -eq "$1" ]; then
		ok "$2"
	else
		not_ok "$2" "exit code $code, not $1, of: postrider $ran: $(last_words)"
	fi
}

# expect CODE CLAIM ARGUMENT...: run and code_is in one
expect() {
	expected=$1 claim=$2
	shift 2
	run "$@"
	code_is "$expected" "$claim"
}

# says STREAM TEXT CLAIM: the text, taken literally, is in `out` or `err` of the last run
says() {
	if grep -qF -- "$2" "$dir/$1"; then
		ok "$3"
	else
		not_ok "$3" "no '$2' in: $(tr '\n' '|' <"$dir/$1" | cut -c 1-300)"
	fi
}

# silent STREAM CLAIM: nothing in it
silent() {
	if [ ! -s "$dir/$1" ]; then
		ok "$2"
	else
		not_ok "$2" "there is: $(tr '\n' '|' <"$dir/$1" | cut -c 1-200)"
	fi
}

# same FILE FILE CLAIM: byte for byte
same() {
	if cmp -s "$1" "$2"; then
		ok "$3"
	else
		not_ok "$3" "$(cmp "$1" "$2" 2>&1 | cut -c 1-200)"
	fi
}

# that CLAIM COMMAND...: the command succeeds
that() {
	claim=$1
	shift
	if "$@"; then
		ok "$claim"
	else
		not_ok "$claim" "false: $*"
	fi
}

# json FILE CLAIM [EXPRESSION]: parses, and the expression in Python is true of the value `d`. Without
# Python only the outermost brackets are looked at.
json() {
	if ! [ -x "$python" ]; then
		if [ "$(head -c 1 "$1")" = "{" ] && [ "$(tail -n 1 "$1")" = "}" ] && [ $# -eq 2 ]; then
			ok "$2"
		else
			skipped "$2" "needs $python"
		fi
	elif "$python" - "$1" "${3:-True}" 2>"$dir/json.err" <<'END'
import json, sys
def no_constant(name):
    raise ValueError("not JSON: " + name)
d = json.load(open(sys.argv[1]), parse_constant=no_constant)
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("false: " + sys.argv[2])
END
	then
		ok "$2"
	else
		not_ok "$2" "$(tail -n 1 "$dir/json.err")"
	fi
}

# make_table FILE [SEED [REPLICATIONS]]: runs of two networks, from the project's own generator or, where
# it was not built, from one with the same columns and a like shape
make_table() {
	if [ -x "$BIN/postrider-synthetic" ]; then
		"$BIN/postrider-synthetic" -o "$1" --seed "${2:-1}" --replications "${3:-1}" && return
	fi
	awk -v seed="${2:-1}" -v reps="${3:-1}" 'BEGIN {
		srand(seed)
		print "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication"
		for (r = 1; r <= reps; r++) for (n = 0; n < 2; n++) for (c = 1; c <= 8; c *= 2)
			for (j = 1; j <= 5; j += 2) for (b = 64; b <= 512; b *= 2)
				printf "%s,%d,%d,%d,10,60000,%.3f,%.4f,%d\n", n ? "simplenet" : "lenet5", c, j, b,
					(600000 / b * (0.045 + 6e-5 * b / c + 0.0017 * c * j)) * (0.95 + 0.1 * rand()),
					0.965 - 1.4e-4 * b - 0.01 * n + 0.002 * rand(), r }' >"$1"
}

# column FILE NAME: the values of a column of a simple CSV
column() {
	awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) k = i; next } k { print $k }' "$1"
}
