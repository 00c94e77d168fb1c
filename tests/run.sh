#!/bin/sh
# Runs the tests and ends with the line "N passed, M failed, K skipped".
#
#   tests/run.sh [--only] TEST...
#
# A test is a program of cmocka, a program replay_NAME, which replays the fuzz corpus NAME, or a script that makes claims as those of
# tests/cli/ do. Without --only all scripts of tests/cli/ run as well.
#
# From the environment: BIN, the folder of the built programs; BUILD_DIR, that of this flavour's
# objects; SAN, its sanitizers. Programs below build/thread/ get those of ThreadSanitizer, so that one run can have both.
# TEST_TIMEOUT (600) is the longest a single program may take, in seconds. TEST_JOBS is how many tests run at a time: two
# more than there are cores, because many of them wait for a daemon. Tests that measure the machine itself run alone,
# afterwards. The results are printed in the same order in any case.
#
# A test that fails beside others is run once more, alone: on a busy machine a program that waits for an event may lose
# its core for longer than it waits. Both runs are shown, and a closing line counts and names the tests that passed only
# on the second try; .ci/run has a limit for them. What a sanitizer found
# or a signal ended is never tried again, except what a failed claim did not give back.
set -u
cd "$(dirname "$0")/.." || exit 1

BIN=${BIN:-$PWD/build}
BUILD_DIR=${BUILD_DIR:-$PWD/build/plain}
SAN=${SAN:-}
export BIN BUILD_DIR SAN
limit=${TEST_TIMEOUT:-600}

# OpenBLAS keeps the buffers of its threads for good; with one thread there are none to mistake for leaks.
export OPENBLAS_NUM_THREADS=1
# Tests of impossible sizes want NULL from malloc, not the end of the program. Short call stacks of allocations and a
# small quarantine save a part of the time; a report that needs more of either is repeated with ASAN_OPTIONS.
export ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1:malloc_context_size=10:quarantine_size_mb=32${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export TSAN_OPTIONS="second_deadlock_stack=1:allocator_may_return_null=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
# One line per case on one stream, each written out before the next case starts: a crash loses none.
export CMOCKA_MESSAGE_OUTPUT=TAP
# What a script runs in the background ignores Ctrl-C, and so does all that it starts. Tests of Ctrl-C want the default.
as_usual=
env --default-signal=INT true 2>/dev/null && as_usual="env --default-signal=INT"

# processor_s FILE: the seconds of processor time of all children so far. The file is scratch: `times` has to run in this
# very shell, and not in a pipe.
processor_s() {
	times >"$1"
	awk 'NR == 2 { split($1, own, /[ms]/); split($2, kernel, /[ms]/)
		printf "%.2f\n", 60 * (own[1] + kernel[1]) + own[2] + kernel[2] }' "$1"
}

# corpus_of TEST: what it replays; nothing for tests that are not of a fuzz entry
corpus_of() {
	case ${1##*/} in replay_*) echo "tests/fuzz/corpus/${1##*/replay_}" ;; esac
}

# start TEST: as its flavour wants it
start() (
	! of_threads "$1" || SAN=thread BUILD_DIR=$PWD/build/thread BIN=$PWD/build/thread
	exec timeout -k 10 "$limit" $as_usual "$1" $(corpus_of "$1") 2>&1 </dev/null
)
of_threads() { case $1 in build/thread/*) ;; *) return 1 ;; esac; }

# --one FOLDER TEST: runs it, and leaves there what it said, how it ended and how long it took
if [ "${1:-}" = --one ]; then
	kept=$2/$(echo "$3" | tr / _)
	began=$(date +%s.%N)
	start "$3" >"$kept.log"
	status=$?
	processor_s "$kept.times" >"$kept.used"
	echo "$began $(date +%s.%N) $(cat "$kept.used")" |
		awk -v status=$status '{ printf "%d %.2f %s\n", status, $2 - $1, $3 }' >"$kept.end"
	exit 0
fi

if [ "${1:-}" = --only ]; then
	shift
else
	for script in tests/cli/*.sh; do
		# the others are what scripts read
		[ ! -x "$script" ] || set -- "$@" "$script"
	done
fi

passed=0 failed=0 skipped=0
ahead=$(mktemp -d) || exit 1
log=$ahead/log
trap 'rm -rf "$ahead"' EXIT
trap 'exit 130' INT TERM

now() { date +%s.%N; }

# count PATTERN: how many lines of the log match
count() { grep -cE "$1" "$log"; }

# run TEST: its output into $log, its status into $status, its duration into $seconds, and its processor time
# into $used
run() {
	kept=$ahead/$(echo "$1" | tr / _)
	beside=
	if [ -e "$kept.end" ]; then
		mv "$kept.log" "$log"
		read -r status seconds used <"$kept.end"
		rm -f "$kept.end"
		beside=1
		return
	fi
	processor_s "$ahead/times" >"$ahead/used"
	read -r used_before <"$ahead/used"
	run_start=$(now)
	start "$1" >"$log"
	status=$?
	seconds=$(echo "$run_start $(now)" | awk '{ printf "%.2f", $2 - $1 }')
	processor_s "$ahead/times" >"$ahead/used"
	used=$(awk -v before="$used_before" '{ printf "%.2f", $1 - before }' "$ahead/used")
}

# why STATUS: in words
why() {
	case $1 in
	124) echo "took longer than $limit s" ;;
	137) echo "was killed (signal 9; also when it ignores the end of its $limit s)" ;;
	1[3-5][0-9]) echo "was ended by signal $(($1 - 128))" ;;
	*) echo "ended with status $1" ;;
	esac
}

# worth_another_try: the run just counted failed, was made beside others, and no sanitizer or signal had a word in it. What
# a test leaves behind where one of its claims fails is no leak of the program: the second try tells.
worth_another_try() {
	[ -n "$beside" ] && [ "$status" -lt 128 ] &&
		! grep -qE 'ERROR: AddressSanitizer|ThreadSanitizer|runtime error:|failed with exception' "$log" &&
		{ ! grep -q LeakSanitizer "$log" || grep -qE '^not ok [0-9]+ - ' "$log"; }
}

failures= second_tries=
# report NAME OK BAD SKIPPED [COMPLAINT]: adds to the totals and says so
report() {
	if [ "$3" -gt 0 ] && worth_another_try; then
		printf '%-40s %d FAILED beside other tests  (%s s); a second try, alone:\n' "$1" "$3" "$seconds"
		sed 's/^/    | /' "$log"
		second_tries="$second_tries $1"
		return 1
	fi
	[ "$3" -gt 0 ] && failures="$failures $1"
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	line=$(printf '%-40s %4d passed' "$1" "$2")
	[ "$3" -gt 0 ] && line="$line, $3 FAILED"
	[ "$4" -gt 0 ] && line="$line, $4 skipped"
	printf '%s  (%s s, %s s of processor time)\n' "$line" "$seconds" "$used"
	echo "$used $1" >>"$ahead/all_used"
	grep -E '^ *skipped(:| -)' "$log" | sed 's/^ */    /'
	[ "$3" -eq 0 ] && return 0
	sed 's/^/    | /' "$log"
	[ -n "${5:-}" ] && echo "    $1 $5"
	echo "    to run it alone: $again"
	return 0
}

run_cmocka() {
	name=${1##*/}
	! of_threads "$1" || name=$name:thread
	again=$1
	run "$1"
	n_ok=$(count '^ok [0-9]+ - ')
	n_bad=$(count '^not ok [0-9]+ - ')
	n_skip=$(count '^(not )?ok [0-9]+ # SKIP')
	# What the program announced, to notice one that stops half-way with a clean status.
	n_plan=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	complaint=
	if [ $((n_ok + n_bad + n_skip)) -lt "$n_plan" ] || [ "$n_plan" -eq 0 ]; then
		n_bad=$((n_bad + 1))
		complaint="$(why "$status") after $((n_ok + n_skip)) of $n_plan tests"
	elif [ "$status" -ne 0 ] && [ "$n_bad" -eq 0 ]; then
		n_bad=1
		complaint=$(why "$status")
	fi
	report "$name" "$n_ok" "$n_bad" "$n_skip" "$complaint" || run_cmocka "$1"
}

run_replay() {
	name=${1##*/}
	again="$1 $(corpus_of "$1")"
	run "$1"
	if [ "$status" -eq 0 ] && grep -qE '^replayed [1-9][0-9]* inputs$' "$log"; then
		report "$name" 1 0 0
	else
		report "$name" 0 1 0 "$(why "$status")" || run_replay "$1"
	fi
}

run_script() {
	again="BIN=$BIN $1"
	run "$1"
	n_ok=$(count '^ok - ')
	n_bad=$(count '^not ok - ')
	n_skip=$(count '^skipped - ')
	complaint=
	if [ "$n_bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((n_ok + n_skip)) -eq 0 ]; }; then
		n_bad=1
		complaint="$(why "$status") after $((n_ok + n_skip)) claims"
	fi
	report "${1#tests/}" "$n_ok" "$n_bad" "$n_skip" "$complaint" || run_script "$1"
}

# What a sanitizer does without. It looks for errors of memory and of arithmetic, so what counts is that all C code runs, with
# every kind of input that tests have for it; not how often, and not what comes out. By this rule:
#   - left out are tests that judge numbers which code computes that other tests run, the client in Python, whose requests
#     tests/daemon/ makes as well, and what is in the programs as they are built;
#   - of the rest, rounds of the same with other seeds, trees of a forest and failures at the k-th call are fewer (effort() and
#     sanitized() of tests/support/, sanitized of tests/cli/lib.sh), and no browser runs.
# FULL=1 in the environment (`make asan-full`) leaves no test out, and effort() and the scripts do as much as without a sanitizer.
FULL=${FULL:-}
export FULL
needs_no_sanitizer() { # TEST
	case $1 in
	*_bars | */test_coverage | */test_adapt_hostile | */test_paper_experiment | */cli/golden.sh | */cli/parity.sh) ;;
	*/cli/python.sh | */cli/hardening.sh) ;;
	*) return 1 ;;
	esac
}

left_out=
# wanted TEST: false where a sanitizer leaves it out
wanted() {
	[ -z "$SAN" ] || [ -n "$FULL" ] || ! needs_no_sanitizer "$1"
}

# independent TEST...: those that may run beside others. The rest measures how busy the machine is, how fast it is, or how
# much memory a daemon needs that gets its turns at once; a sanitized test_other_load reads the load but does not judge it.
independent() {
	for test; do
		case $test in
		*/tests/bars/* | */test_soak) ;;
		*/test_other_load) [ -z "$SAN" ] || echo "$test" ;;
		*) ! wanted "$test" || echo "$test" ;;
		esac
	done
}

# The longest in processor time and in waiting, so that none of them is left at the end to run while a core has nothing to do.
longest="parity.sh test_engine_jobs test_training train.sh other_work.sh test_learning test_replay report.sh slurm.sh own_job.sh golden.sh
	test_durability python.sh automl.sh test_protocol test_supervisor engine.sh test_crowd test_limits test_store_failure
	page.sh daemon_verbs.sh profile.sh test_automl_tune test_crash test_reload test_predictors test_daemons test_nodes test_baselines
	test_life_property test_policies compare.sh replay.sh test_compare test_states test_model_io test_doubt test_storage submit.sh"
# longest_first: lines of tests, in the order in which they are to start
longest_first() {
	awk -v longest="$(echo $longest)" 'BEGIN { n = split(longest, name, " "); for (i = 1; i <= n; i++) place[name[i]] = i }
		{ n_parts = split($0, part, "/"); print (part[n_parts] in place ? place[part[n_parts]] : n + 1), NR, $0 }' |
		sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 3-
}
jobs=${TEST_JOBS:-$(($(nproc) + 2))}
if [ $# -gt 1 ] && [ "$jobs" -gt 1 ]; then
	echo "independent tests, $jobs at a time ..."
	independent "$@" | longest_first | xargs -P "$jobs" -I '{}' sh tests/run.sh --one "$ahead" '{}'
fi

for test; do
	if ! wanted "$test"; then
		left_out="$left_out ${test##*/}"
		continue
	fi
	case $test in
	*.sh) run_script "$test" ;;
	*/replay_*) run_replay "$test" ;;
	*) run_cmocka "$test" ;;
	esac
done
[ -z "$left_out" ] || echo "left out, as a sanitizer finds nothing there:$left_out"

if [ "$(wc -l <"$ahead/all_used" 2>/dev/null || echo 0)" -gt 15 ]; then
	echo "processor time of all tests and of the 15 that took most, in seconds:"
	sort -rn "$ahead/all_used" | awk '{ sum += $1 } NR <= 15 { most = most sprintf("  %7.1f  %s\n", $1, $2) }
		END { printf "  %7.1f  in all\n%s", sum, most }'
fi
flaky=
for name in $second_tries; do
	case "$failures " in *" $name "*) ;; *) flaky="$flaky $name" ;; esac
done
[ -z "$flaky" ] || echo "$(echo "$flaky" | wc -w) passed only on a second try, alone:$flaky"
[ -z "$failures" ] || echo "failed:$failures"
[ $((passed + failed)) -gt 0 ] || echo "no test ran"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
