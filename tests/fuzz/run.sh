#!/bin/sh
# Fuzzes one parser with libFuzzer: tests/fuzz/run.sh NAME SECONDS
#
# Starts from a copy of tests/fuzz/corpus/NAME, with the words of tests/fuzz/NAME.dict where there are any;
# what it finds on the way stays in build/fuzz/corpus-NAME, an input that breaks the parser in
# build/fuzz/NAME-crash-*. Such an input belongs into tests/fuzz/corpus/NAME together with the fix. JOBS compilers run at a time (2).
# With 0 seconds it is only built.
set -eu
cd "$(dirname "$0")/../.."

if [ $# -ne 2 ]; then
	echo "usage: tests/fuzz/run.sh NAME SECONDS, NAME one of:" tests/fuzz/fuzz_*.c |
		sed 's|tests/fuzz/fuzz_\([^ ]*\)\.c|\1|g' >&2
	exit 2
fi
name=$1 seconds=$2
entry=tests/fuzz/fuzz_$name.c
if [ ! -f "$entry" ]; then
	echo "fuzz: there is no $entry" >&2
	exit 2
fi
CLANG=${CLANG:-clang}
if ! command -v "$CLANG" >/dev/null; then
	echo "fuzz: libFuzzer comes with clang, which is not here. On Debian: apt-get install clang" >&2
	exit 1
fi

out=build/fuzz
mkdir -p "$out"
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
	"$CLANG" -fsanitize=fuzzer,address,undefined -x c -o "$out/probe" - 2>"$out/probe.log"; then
	cat "$out/probe.log" >&2
	echo "fuzz: $CLANG has no libFuzzer. On Debian: apt-get install clang libclang-rt-dev" \
		"(before Debian 12: libclang-common-VERSION-dev)" >&2
	exit 1
fi

# The same layers and libraries as the program that replays the corpus (tests/tests.mk), with their own objects.
command -v ccache >/dev/null && CLANG="ccache $CLANG"
target=$out/objects/tests/fuzz/libfuzzer_$name
env -u MAKEFLAGS -u MFLAGS make --no-print-directory -j"${JOBS:-2}" B="$out/objects" CC="$CLANG" SAN=address,undefined WERROR= COV= \
	OPT='-O1 -g -fsanitize=fuzzer-no-link' "$target"
[ "$seconds" -gt 0 ] || exit 0

corpus=$out/corpus-$name
mkdir -p "$corpus"
if [ -d "tests/fuzz/corpus/$name" ]; then
	find "tests/fuzz/corpus/$name" -type f -exec cp {} "$corpus/" \;
fi

words=
[ -f "tests/fuzz/$name.dict" ] && words=-dict=tests/fuzz/$name.dict

# The daemon keeps jobs from input to input, which is no leak; and its thousands of features make the choice of the
# next input by their frequency slower than the runs.
# Longer inputs of the others say nothing that short ones do not, and take longer.
case $name in
request) settings='-detect_leaks=0 -entropic=0 -max_len=256' ;;
observation) settings=-max_len=1024 ;;
trace) settings=-max_len=2048 ;;
*) settings= ;;
esac
export ASAN_OPTIONS="${ASAN_OPTIONS:-malloc_context_size=4:quarantine_size_mb=16}"

status=0
# shellcheck disable=SC2086 # no dictionary, no word
OPENBLAS_NUM_THREADS=1 "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
	-print_final_stats=1 $settings $words -artifact_prefix="$out/$name-" "$corpus" >"$out/$name.log" 2>&1 || status=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")
if [ "$status" -ne 0 ]; then
	tail -n 60 "$out/$name.log" >&2
	echo "fuzz: $name failed after ${runs:-?} runs; the input is in $out/$name-*" >&2
	exit 1
fi
echo "fuzz $name: ${runs:-0} runs in $seconds s, no failure, $(find "$corpus" -type f | wc -l) inputs in $corpus"
