#!/bin/sh
# make-deb.sh FOLDER [VERSION]: builds the Debian packages from the files that git knows, into FOLDER. The version is that of the
# file VERSION; another one is for the test of an upgrade. Nothing is left in the tree itself.
set -eu
cd "$(dirname "$0")/.."
out=$1
version=${2:-$(cat VERSION)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s dist DIST_DIR="$work"
tar -xzf "$work/postrider-$(cat VERSION).tar.gz" -C "$work"
tree=$work/postrider-$version
[ -d "$tree" ] || mv "$work/postrider-$(cat VERSION)" "$tree"
echo "$version" >"$tree/VERSION"
when=$(stat -c %Y "$tree/VERSION.date" 2>/dev/null || git log -1 --format=%ct 2>/dev/null || date +%s)
cat >"$tree/debian/changelog" <<END
postrider ($version) unstable; urgency=medium

  * Version $version.

 -- The Postrider authors <postrider@localhost>  $(date -uRd "@$when")
END
cd "$tree"
SOURCE_DATE_EPOCH=$when DEB_BUILD_OPTIONS="nocheck ${DEB_BUILD_OPTIONS:-parallel=$(nproc)}" dpkg-buildpackage -b -us -uc
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out/"
