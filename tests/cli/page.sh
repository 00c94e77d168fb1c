#!/bin/sh
# The live page: who sees what over HTTP, and the page in a real browser (tests/page/). SHOTS=FOLDER leaves screenshots there.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

if ! [ -x "$python" ]; then
	skipped "the live page" "needs $python"
	finish
fi
BIN=$BIN "$python" tests/page/test_page.py >"$dir/out" 2>&1
sed -n 's/^\(test_[a-z_0-9]*\).* \.\.\. ok$/ok - page: \1/p' "$dir/out"
sed -n "s/^\(test_[a-z_0-9]*\).* \.\.\. skipped '\(.*\)'$/skipped - page: \1 (\2)/p" "$dir/out"
if grep -qE '^OK' "$dir/out"; then
	ok "page: all tests pass"
else
	not_ok "page: all tests pass" "$(grep -E '^(FAIL|ERROR|[A-Za-z.]*(Error|Exception))' "$dir/out" | tr '\n' '|' | cut -c 1-600)"
fi
finish
