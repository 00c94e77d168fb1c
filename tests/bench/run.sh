#!/bin/sh
# The whole bench, or the names in $BENCH: run.sh BENCH_PROGRAM JSON_FILE. Run from the root of the
# repository. BENCH_FULL=1 lets the peers run their long tasks whole instead of a part scaled up.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: run.sh BENCH_PROGRAM JSON_FILE" >&2
	exit 2
fi
mkdir -p "$(dirname "$2")"
# shellcheck disable=SC2086 # a list of names is meant
exec "$1" -o "$2" ${BENCH:-}
