#!/bin/sh
# Line coverage after a run of the tests built with COV=1: tests/coverage.sh BUILD_DIR
#
# One line per source file of common/, predictors/ and scheduler/, then the total. A file that no
# test program links at all has no .gcda beside its .gcno; it counts with none of its lines run.
set -eu
cd "$(dirname "$0")/.."

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
	echo "usage: tests/coverage.sh BUILD_DIR, a folder that make COV=1 check filled" >&2
	exit 2
fi
notes=$(cd "$1" && find common predictors scheduler -name '*.gcno' 2>/dev/null | sort)
if [ -z "$notes" ]; then
	echo "coverage: no .gcno files in $1: build with make COV=1 check" >&2
	exit 1
fi

# gcov says "File 'X'" and "Lines executed:P% of N" for the source and for every header it includes;
# only the pair that names the source itself is taken.
for note in $notes; do
	source=${note%.gcno}.c
	[ -f "$source" ] || continue # left over from a file that was removed since
	LC_ALL=C gcov -n "$1/$note" 2>/dev/null | awk -v want="$source" '
		/^File / { name = $0; sub(/^File \x27/, "", name); sub(/\x27$/, "", name); next }
		/^Lines executed:/ && name == want {
			split($0, part, /[:%]/)
			n = $NF
			printf "%s %d %d\n", want, part[2] * n / 100 + 0.5, n
			found = 1
			exit
		}
		END { if (!found) printf "%s 0 0\n", want }'
done | awk '
	{
		run += $2; all += $3
		printf "%-44s %6d of %6d lines  %6.1f %%\n", $1, $2, $3, $3 ? 100 * $2 / $3 : 0
	}
	END { printf "%-44s %6d of %6d lines  %6.1f %%\n", "total", run, all, all ? 100 * run / all : 0 }'
