#!/bin/sh
# Replays of three traces give what they gave before: tests/golden/README.md.
. tests/cli/lib.sh

# Training is linear algebra, and libraries choose their kernels by the processor: a last digit that differs may turn a tie
# between two splits of a tree. With the oldest kernels all x86-64 machines give the same bits.
if [ "$(uname -m)" != x86_64 ]; then
	skipped "golden replays" "kept for x86-64, this is $(uname -m)"
	finish
fi
export OPENBLAS_CORETYPE=Prescott GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4

# alike EXPECTED GOT: the same words, and numbers equal to 1e-6
alike() {
	awk -v other="$2" '
		function number(s) { return s ~ /^-?[0-9.]+([eE][-+]?[0-9]+)?$/ }
		function far(a, b) { d = a - b; if (d < 0) d = -d; m = a < 0 ? -a : a; return d > 1e-6 * m + 1e-9 }
		{
			if ((getline line < other) <= 0) { print "line " NR " is missing"; bad = 1; exit 1 }
			n = split($0, want, /[ ,:"\[\]{}]+/); k = split(line, got, /[ ,:"\[\]{}]+/)
			for (i = 1; i <= (n > k ? n : k); i++)
				if (want[i] "" != got[i] "" && !(number(want[i]) && number(got[i]) && !far(want[i], got[i]))) {
					print "line " NR ": " want[i] " became " got[i]; bad = 1; exit 1
				}
		}
		END { if (!bad && (getline line < other) > 0) { print "there are more lines"; exit 1 } }' "$1"
}

for golden in tests/golden/*/command; do
	name=$(basename "$(dirname "$golden")")
	# shellcheck disable=SC2046 # words are meant
	expect 0 "golden replay $name runs" replay $(cat "$golden") -o "$dir/$name"
	for file in compare.json jobs.csv; do
		if [ "${GOLDEN:-}" = update ]; then
			cp "$dir/$name/$file" "tests/golden/$name/$file"
		fi
		if why=$(alike "tests/golden/$name/$file" "$dir/$name/$file"); then
			ok "golden replay $name: $file is what it was"
		else
			not_ok "golden replay $name: $file is what it was" "$why"
		fi
	done
done
finish
