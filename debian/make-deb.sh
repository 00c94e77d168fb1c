#!/bin/sh
# make-deb.sh FOLDER [VERSION]: builds the Debian packages from the files that git knows, into FOLDER. The version is that of the
# file VERSION; another one is for the test of an upgrade. Nothing is left in the tree itself.
set -eu
cd "$(dirname "$0")/.."
out=$1
version=${2:-$(cat VERSION)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$out/work # always the same place, for a compiler cache
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
make -s dist DIST_DIR="$work"
tree=$work/tree
mkdir "$tree"
tar -xzf "$work/postrider-$(cat VERSION).tar.gz" -C "$tree" --strip-components=1
echo "$version" >"$tree/VERSION"
when=$(git log -1 --format=%ct 2>/dev/null || date +%s)
cat >"$tree/debian/changelog" <<END
postrider ($version) unstable; urgency=medium

  * Version $version.

 -- The Postrider authors <postrider@localhost>  $(date -uRd "@$when")
END
cd "$tree"
SOURCE_DATE_EPOCH=$when DEB_BUILD_OPTIONS="nocheck ${DEB_BUILD_OPTIONS:-parallel=$(nproc)}" dpkg-buildpackage -b -us -uc
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out/"
