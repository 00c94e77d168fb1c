#!/bin/sh
# The Python package: its tests against a real daemon, its types, and a wheel.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

if ! [ -x "$python" ]; then
	skipped "the Python package" "needs $python"
	finish
fi
BIN=$BIN "$python" -W error::ResourceWarning python/tests/test_postrider.py -v >"$dir/out" 2>&1
sed -n 's/^\(test_[a-z_0-9]*\).* \.\.\. ok$/ok - python: \1/p' "$dir/out"
sed -n "s/^\(test_[a-z_0-9]*\).* \.\.\. skipped '\(.*\)'$/skipped - python: \1 (\2)/p" "$dir/out"
if grep -qE '^OK' "$dir/out"; then
	ok "python: all tests pass"
else
	not_ok "python: all tests pass" "$(grep -E '^(FAIL|ERROR|[A-Za-z.]*(Error|Timeout|Exception))' "$dir/out" | tr '\n' '|' | cut -c 1-400)"
fi

# The oldest Python there is for it: nothing newer is used
"$python" - <<'END' >"$dir/out" 2>&1
import ast, glob
for path in glob.glob("python/postrider/*.py"):
    ast.parse(open(path).read(), path, feature_version=(3, 9))
END
that "the package is written in Python 3.9" [ ! -s "$dir/out" ]
if "$python" -c 'import sys; sys.exit(not hasattr(sys, "stdlib_module_names"))'; then
	"$python" - <<'END' >"$dir/out" 2>&1
import ast, glob, sys
for path in glob.glob("python/postrider/*.py"):
    for node in ast.walk(ast.parse(open(path).read())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else \
            [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
        for name in names:
            if name.split(".")[0] not in sys.stdlib_module_names:
                print(path, name)
END
	that "and uses the standard library alone" [ ! -s "$dir/out" ]
fi
if "$python" -c 'import mypy' 2>/dev/null; then
	that "types are right by mypy --strict" sh -c "cd python && '$python' -m mypy --strict postrider >'$dir/out' 2>&1"
else
	skipped "types by mypy" "not installed; Debian: mypy"
fi

# A wheel, without the network
if "$python" -c 'import setuptools, wheel' 2>/dev/null; then
	if make -s wheel PYTHON="$python" WHEEL_DIR="$dir/wheel" >"$dir/out" 2>&1; then
		wheel=$(ls "$dir"/wheel/postrider-*.whl)
		that "a wheel has the version of the program" [ "$(basename "$wheel")" = "postrider-$(cat VERSION)-py3-none-any.whl" ]
		"$python" -m zipfile -e "$wheel" "$dir/unpacked"
		that "and works where it is unpacked" sh -c "cd '$dir' && PYTHONPATH='$dir/unpacked' '$python' -c \"
import postrider, os
assert postrider.__version__ == '$(cat VERSION)', postrider.__version__
assert os.path.exists(os.path.join(os.path.dirname(postrider.__file__), 'py.typed'))\""
	else
		not_ok "a wheel is built" "$(tail -n 1 "$dir/out")"
	fi
else
	skipped "a wheel" "setuptools or wheel is not installed; Debian: python3-setuptools, python3-wheel"
fi
finish
