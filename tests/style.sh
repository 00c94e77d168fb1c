#!/bin/sh
# style.sh: what every source file keeps to. Prints each place that does not, and ends with status 1.
#   - clang-format leaves .c files as they are (headers are laid out by hand);
#   - no line of a .c or .h file is longer than 110 columns, a tab being 8;
#   - a .c file opens with a comment that says what it is for.
set -u
export LC_ALL=C # bytes are counted
cd "$(dirname "$0")/.." || exit 1
bad=0

if command -v clang-format >/dev/null; then
	git ls-files '*.c' | xargs clang-format --dry-run --Werror || bad=1
else
	echo "skipped: clang-format is not installed"
fi

git ls-files '*.c' '*.h' | xargs awk '
	{ line = $0; gsub(/\t/, "        ", line) }
	# multi-byte characters count once
	{ gsub(/[\200-\277]/, "", line) }
	length(line) > 110 { printf "%s:%d: %d columns\n", FILENAME, FNR, length(line); n++ }
	END { exit n > 0 }' || bad=1

for file in $(git ls-files '*.c'); do
	case $(head -c 2 "$file") in
	'/*' | '//') ;;
	*) echo "$file: does not open with a comment that says what it is for" && bad=1 ;;
	esac
done
[ $bad = 0 ] && echo "style is kept"
exit $bad
