#!/bin/sh
# style.sh: what every source file keeps to. Prints each place that does not, and ends with status 1.
#   - clang-format leaves .c files as they are (headers are laid out by hand);
#   - no line of a .c or .h file is longer than 110 columns, a tab being 8;
#   - a .c file opens with a comment that says what it is for;
#   - a source file that a comment names is there.
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
git ls-files '*.c' '*.h' | awk -v others='cmocka.h sysexits.h c_api.h' '
	BEGIN { n = split(others, o, " "); for (i = 1; i <= n; i++) there[o[i]] = 1 }
	{ path[NR] = $0; name = $0; sub(/.*\//, "", name); there[name] = 1 }
	function look(text, place,   word) {
		while (match(text, /[A-Za-z_][A-Za-z0-9_]*\.[ch]([^A-Za-z0-9_]|$)/)) {
			word = substr(text, RSTART, RLENGTH)
			sub(/[^A-Za-z0-9_]$/, "", word)
			if (!(word in there) && substr(text, RSTART - 1, 1) != ".") { print place ": there is no " word; bad = 1 }
			text = substr(text, RSTART + RLENGTH)
		}
	}
	END {
		for (k = 1; k <= NR; k++) {
			inside = line = 0
			while ((getline text <path[k]) > 0) {
				line++
				if (!inside && !(inside = index(text, "/*"))) continue
				from = inside > 0 ? inside : 1
				end = index(substr(text, from), "*/")
				look(end ? substr(text, from, end) : substr(text, from), path[k] ":" line)
				inside = end ? 0 : -1
			}
			close(path[k])
		}
		exit bad
	}' || bad=1

[ $bad = 0 ] && echo "style is kept"
exit $bad
