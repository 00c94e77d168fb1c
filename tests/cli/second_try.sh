#!/bin/sh
# tests/run.sh counts what passed only on a second try: .ci/run has a limit for it.
. tests/cli/lib.sh

cat >"$dir/flaky.sh" <<END
#!/bin/sh
mkdir "$dir/tried" 2>/dev/null && echo "not ok - it" && exit 1
echo "ok - it"
END
printf '#!/bin/sh\necho "not ok - it"; exit 1\n' >"$dir/bad.sh"
printf '#!/bin/sh\necho "ok - it"\n' >"$dir/good.sh"
chmod +x "$dir/flaky.sh" "$dir/bad.sh" "$dir/good.sh"
TEST_JOBS=2 tests/run.sh --only "$dir/flaky.sh" "$dir/bad.sh" "$dir/good.sh" >"$dir/out" 2>"$dir/err"
code=$? ran="tests/run.sh --only ..."
code_is 1 "a test that fails twice has failed"
says out "1 passed only on a second try, alone: $dir/flaky.sh" "one that passes the second time is counted and named"
says out "failed: $dir/bad.sh" "and one that does not is no part of it"
says out "2 passed, 1 failed, 0 skipped" "the sum is of the last tries"
finish
