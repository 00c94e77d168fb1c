#!/bin/sh
# Installs those of the named Debian packages that are missing: install-packages.sh PACKAGE...
set -eu
missing=
for p in "$@"; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "make deps: needs these Debian packages or their like on this system:$missing" >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null || [ -t 0 ] && command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "make deps: not root and sudo does not work; ask an administrator to run:" >&2
	echo "  apt-get install$missing" >&2
	exit 1
fi
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words is meant
{ $as_root apt-get install -y --no-install-recommends $missing ||
	{ $as_root apt-get update && $as_root apt-get install -y --no-install-recommends $missing; }; } >&2
