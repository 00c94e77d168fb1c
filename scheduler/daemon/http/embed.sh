#!/bin/sh
# embed.sh FILE...: C with the bytes of the files, so that the page is part of the program. index.html is the page at "/".
set -eu
echo '/* Made by embed.sh. */'
echo '#include "scheduler/daemon/http/http_internal.h"'
n=0
for file; do
	echo "static const unsigned char file$n[] = {"
	od -An -v -tx1 "$file" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo "};"
	n=$((n + 1))
done
echo 'const struct page_file page_file[] = {'
n=0
for file; do
	name=${file##*/}
	case $name in
	*.html) type='text/html; charset=utf-8' ;;
	*.js) type='text/javascript; charset=utf-8' ;;
	*.css) type='text/css; charset=utf-8' ;;
	*.svg) type='image/svg+xml' ;;
	*) echo "embed.sh: what is $file?" >&2; exit 1 ;;
	esac
	[ "$name" = index.html ] && name=
	echo "	{ \"/$name\", \"$type\", file$n, sizeof file$n },"
	n=$((n + 1))
done
echo '	{ 0 },'
echo '};'
