#!/bin/sh
# `make run` as a stranger sees it, with a table that was measured before (tests/demo/runs.csv), so that it is quick: on a terminal
# of 100 x 40 few lines, none cut, the message on the last 24; a step that fails shows its log; the sentences for other outcomes.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

# A tree of its own: the demo leaves its files in build/run.
tree=$dir/tree
mkdir -p "$tree/build"
for f in "$BIN"/postrider*; do
	[ -x "$f" ] && ln -s "$f" "$tree/build/"
done
ln -s "$PWD/tests" "$PWD/configs" "$tree/"

if [ -x "$python" ] && ! sanitized; then
	cat >"$dir/terminal.py" <<'END'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.chdir(sys.argv[1])
    os.execvp("sh", ["sh", "tests/demo.sh", "build"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
said = b""
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    said += piece
open(sys.argv[2], "wb").write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
	env -u MAKE -u POSTRIDER_SOCKET -u POSTRIDER_CONFIG LC_ALL=C.UTF-8 RUNS=tests/demo/runs.csv \
		"$python" "$dir/terminal.py" "$tree" "$dir/raw" >"$dir/out" 2>&1
	code=$?
	# What is left of a line that is drawn again and again: what comes after the last carriage return.
	tr -d '\r' <"$dir/raw" | sed 's/.*\x1b\[K//' >"$dir/seen"
	lines=$(wc -l <"$dir/seen")
	if [ $code -eq 0 ]; then ok "it ends well"; else not_ok "it ends well" "$code: $(tail -n 3 "$dir/seen" | tr '\n' '|')"; fi
	# Three steps are not in it: installing, building, measuring.
	if [ "$lines" -le 40 ]; then ok "at most 40 lines, so that with all steps it is less than 60"; else not_ok "at most 40 lines" "$lines"; fi
	wide=$(awk 'length > 100' "$dir/seen" | head -n 1)
	if [ -z "$wide" ]; then ok "no line is wider than the terminal"; else not_ok "no line is wider than the terminal" "$wide"; fi
	tail -n 24 "$dir/seen" >"$dir/out"
	says out "The limit decides the batch" "the last 24 lines: what the limit decided"
	says out "12 jobs: " "the last 24 lines: what came of the promises"
	says out "always 512" "the last 24 lines: one batch for all"
	says out "build/run/compare/report.html" "the last 24 lines: where the picture is"
	for word in init profile "run train-postrider --slo"; do
		says out "build/postrider $word" "the last 24 lines: $word for a script of one's own"
	done
	that "the batches of the first three jobs differ" sh -c "[ \$(sed -n 's/^  limit .* batch *\([0-9]*\) .*/\1/p' '$dir/out' | sort -u | wc -l) -ge 2 ]"
	# shellcheck disable=SC2016
	that "a step shows on a terminal how far it is" grep -q 'running *\[##*\.*\] *[0-9]* %' "$dir/raw"
	that "the picture is there" test -s "$tree/build/run/compare/report.html"
	that "the screen is there as a picture, too" grep -q '<text.*12 jobs: ' "$tree/build/run/screen.svg"
	that "and so are all decisions" sh -c "[ \$(grep -c '^job ' '$tree/build/run/decisions.txt') -ge 12 ]"
	that "each step has a log" test -e "$tree/build/run/training.log" -a -e "$tree/build/run/running.log" -a -e "$tree/build/run/comparing.log"
else
	skipped "the demo on a terminal" "needs $python, without a sanitizer"
fi

# A table that cannot be learnt from: the step fails, and says why at once.
printf 'batch,njobs\n1,1\n' >"$dir/bad.csv"
(cd "$tree" && env -u MAKE RUNS="$dir/bad.csv" sh tests/demo.sh build >"$dir/out" 2>&1)
code=$?
that "a step that fails ends it" test $code -ne 0
says out "failed; the end of build/run/training.log" "a step that fails is named, with its log"
says out "time_s" "and the log is shown: what is missing"

# ---- the last screen for other outcomes ----
screen() { awk -f tests/demo.awk "$dir/jobs.jsonl" "$dir/compare.json" >"$dir/out"; }
cat >"$dir/jobs.jsonl" <<'END'
{"job":"1","slo_s":1.5,"verdict":"promised","batch":512,"slo_outcome":"met","accuracy":0.55,"response_s":0.7,"params":{"network":"simplenet"}}
{"job":"2","slo_s":2.5,"verdict":"promised","batch":128,"slo_outcome":"missed","accuracy":0.75,"response_s":2.7,"params":{"network":"simplenet"}}
{"job":"3","slo_s":0.1,"verdict":"rejected","batch":null,"slo_outcome":null,"accuracy":null,"response_s":null,"params":{"network":"simplenet"}}
{"job":"4","slo_s":3,"verdict":"chance","batch":32,"slo_outcome":"missed","accuracy":0.8,"response_s":3.5,"params":{"network":"lenet5"}}
END
compared() { # LOW HIGH of (batch 128 - Postrider)
	cat >"$dir/compare.json" <<END
      "name": "postrider",
      "attainment_all": 0.9,
      "accuracy_zero": 0.70,
      "name": "fixed:128",
      "attainment_all": 0.8,
      "accuracy_zero": $3,
        "accuracy_zero": {
          "low": $1,
          "high": $2
        }
END
}
compared -0.2 -0.05 0.60
screen
says out "limit  2.50 s  batch 128  accuracy 0.750  took  2.70 s  promise broken" "a broken promise is called broken"
says out "limit 0.100 s  refused" "a refused job is called refused"
says out "4 jobs: 2 promised, 1 of these kept; 1 tried without a promise, 0 in time; 1 refused at once." "the promises are counted"
says out "Postrider is more accurate than the best single batch (128): 0.700 against 0.600." "where it is better, that is said"
compared 0.02 0.2 0.80
screen
says out "Here Postrider is less accurate than" "where it is worse, that is said"
compared -0.02 0.03 0.71
screen
says out "not surely better" "where it is open, that is said"
says out "could be chance" "and why"
finish
