#!/bin/sh
# Fuzzes one parser with libFuzzer: tests/fuzz/run.sh NAME SECONDS
#
# Starts from a copy of tests/fuzz/corpus/NAME, with the words of tests/fuzz/NAME.dict where there are any;
# what it finds on the way stays in build/fuzz/corpus-NAME, an input that breaks the parser in
# build/fuzz/NAME-crash-*. Such an input belongs into tests/fuzz/corpus/NAME together with the fix. JOBS compilers run at a time (2).
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
mkdir -p "$out/obj"
flags="-std=gnu11 -O1 -g -I. -pthread -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer
	-fsanitize=address,undefined -fno-sanitize-recover=all -DPOSTRIDER_VERSION=\"$(cat VERSION)\""
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
	"$CLANG" -fsanitize=fuzzer,address,undefined -x c -o "$out/probe" - 2>"$out/probe.log"; then
	cat "$out/probe.log" >&2
	echo "fuzz: $CLANG has no libFuzzer. On Debian: apt-get install clang libclang-rt-dev" \
		"(before Debian 12: libclang-common-VERSION-dev)" >&2
	exit 1
fi

# Every layer below the programs, and the entry's own file. Objects are kept and made again when
# their source or any header is newer.
layers='common queueing predictors scheduler/core scheduler/process scheduler/profiler scheduler/config' libs='' alone=''
if grep -q '"scheduler/daemon/' "$entry"; then
	layers="$layers scheduler/jobs scheduler/store scheduler/daemon" libs='-levent_extra -levent_core -lsqlite3'
	alone=$out/page_files.c # the page is part of the daemon
	scheduler/daemon/http/embed.sh scheduler/daemon/http/page/* >"$alone.new"
	if cmp -s "$alone.new" "$alone"; then rm "$alone.new"; else mv "$alone.new" "$alone"; fi
elif grep -q '"automl/' "$entry"; then
	layers="$layers automl"
elif grep -q '"sim/' "$entry"; then
	layers="$layers scheduler/jobs scheduler/store sim" libs=-lsqlite3
elif grep -q '"scheduler/supervisor/' "$entry"; then
	layers="$layers scheduler/supervisor"
elif grep -q '"scheduler/store/' "$entry"; then
	layers="$layers scheduler/jobs scheduler/store" libs=-lsqlite3
elif grep -q '"workloads/' "$entry"; then
	# The loops of the training job are written for gcc; an entry needs none of them.
	layers=common alone=$(sed -n 's|^#include "\(workloads/.*\)\.h"$|\1.c|p' "$entry")
fi
sources=
for layer in $layers; do
	sources="$sources $(echo "$layer"/*.c "$layer"/*/*.c)"
done
newest_header=$(find common queueing predictors scheduler sim automl workloads -name '*.h' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
entry_object=$out/obj/tests_fuzz_fuzz_$name.o
objects='' todo=''
for source in $sources $alone "$entry"; do
	[ -f "$source" ] || continue
	case $source in *_main.c) continue ;; esac
	object=$out/obj/$(echo "$source" | tr / _ | sed 's/\.c$/.o/')
	[ "$object" = "$entry_object" ] || objects="$objects $object"
	# shellcheck disable=SC3013 # dash, bash and busybox all know -nt
	if [ ! -f "$object" ] || [ "$source" -nt "$object" ] || [ "$newest_header" -nt "$object" ]; then
		todo="$todo $source $object"
	fi
done
# shellcheck disable=SC2086,SC2016 # lists of words are meant; the inner shell expands
[ -z "$todo" ] || printf '%s\n' $todo | xargs -n 2 -P "${JOBS:-2}" sh -c \
	'echo "  CC  $2"; exec $0 $1 -fsanitize=fuzzer-no-link -c -o "$3" "$2"' "$CLANG" "$flags"
# Through an archive, so that an entry pulls in no more than it calls.
rm -f "$out/lib$name.a"
# shellcheck disable=SC2086
ar rcs "$out/lib$name.a" $objects
# shellcheck disable=SC2086
"$CLANG" $flags -fsanitize=fuzzer -o "$out/$name" "$entry_object" "$out/lib$name.a" \
	-lsvm -llapacke -lopenblas -lgsl -lcjson $libs -lm -pthread

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
OPENBLAS_NUM_THREADS=1 "$out/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
	-print_final_stats=1 $settings $words -artifact_prefix="$out/$name-" "$corpus" >"$out/$name.log" 2>&1 || status=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")
if [ "$status" -ne 0 ]; then
	tail -n 60 "$out/$name.log" >&2
	echo "fuzz: $name failed after ${runs:-?} runs; the input is in $out/$name-*" >&2
	exit 1
fi
echo "fuzz $name: ${runs:-0} runs in $seconds s, no failure, $(find "$corpus" -type f | wc -l) inputs in $corpus"
