#!/bin/sh
# What a budget of `profile` buys: jobs whose truth is known, of 20 s and more, with every time at a tenth; with BARS=1 twelve of them as they
# are, 1 s to 5 min a run (6 minutes). See tests/bars/budget.py.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

if ! [ -x "$python" ]; then
	skipped "what a budget buys" "needs $python"
	finish
fi
if [ -n "${BARS:-}" ]; then jobs=12 scale=1 shortest=1; else jobs=5 scale=0.1 shortest=20; fi
"$python" tests/bars/budget.py "$postrider" --jobs $jobs --scale $scale --shortest $shortest >"$dir/out" 2>&1
grep '^#' "$dir/out"
# How many limits are promised is a bar of all twelve: among five, one job whose budget is a sixth of a run decides it.
[ -z "${BARS:-}" ] || promised="feasible limits that are promised"
for bar in "measuring exceeds a budget by at most an epoch" "bounds that hold" "accuracy over the best in time" \
	${promised:+"$promised"}; do
	if grep -q "^ok - $bar" "$dir/out"; then
		ok "$(sed -n "s/^ok - \($bar.*\)/\1/p" "$dir/out")"
	else
		not_ok "$bar" "$(grep -v '^#' "$dir/out" | tr '\n' '|' | cut -c 1-400)"
	fi
done
finish
