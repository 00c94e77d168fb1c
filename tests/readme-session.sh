#!/bin/sh
# readme-session.sh BIN_DIR [--update]: runs the commands of the README's console block and compares what they
# print with what the README says; --update writes what they print into it. Times of day and of deciding
# are not compared. Run from the repository's root.
set -eu
bin=$(cd "$1" && pwd)
readme=$PWD/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$bin" "$work/build"
ln -s "$PWD/configs" "$work/configs"

awk '/^```console$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" >"$work/said"
: >"$work/printed"
grep '^\$ ' "$work/said" | while IFS= read -r line; do
	printf '%s\n' "$line" >>"$work/printed"
	if ! (cd "$work" && LC_ALL=C.UTF-8 sh -c "${line#\$ }" >out 2>err); then
		echo "the README's command fails: $line" >&2
		cat "$work/err" >&2
		exit 1
	fi
	sed 's/[[:space:]]*$//' "$work/out" >>"$work/printed"
done

if [ "${2:-}" = --update ]; then
	awk -v new="$work/printed" '
		/^```console$/ { print; while ((getline line < new) > 0) print line; inside = 1; next }
		/^```$/ && inside { inside = 0 }
		!inside' "$readme" >"$work/README.md"
	cp "$work/README.md" "$readme"
	exit 0
fi

forget() { sed -E 's/in [0-9.]+ [mu]?s$/in SOME TIME/; s/20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/SOME DAY/' "$1"; }
forget "$work/said" >"$work/a"
forget "$work/printed" >"$work/b"
if diff -u "$work/a" "$work/b"; then
	echo "the README's session prints what it says"
else
	echo "the README's session prints something else now: tests/readme-session.sh $1 --update" >&2
	exit 1
fi
