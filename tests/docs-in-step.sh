#!/bin/sh
# docs-in-step.sh BIN_DIR: every verb and every long option of a verb is in its man page, every man page's verb exists,
# and the folders and files that the documents name exist; the README is short.
set -u
bin=$1
bad=0
complain() {
	echo "not in step: $*" >&2
	bad=1
}
for page in docs/man/postrider-*.1; do
	verb=$(basename "$page" .1)
	verb=${verb#postrider-}
	"$bin/postrider" "$verb" --help >/dev/null 2>&1 || complain "$page: there is no verb $verb"
	for option in $("$bin/postrider" "$verb" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
		# options every verb has are explained once, in postrider.1
		sed 's/\\-/-/g' "$page" docs/man/postrider.1 | grep -q -- "$option" ||
			complain "$page does not explain $option"
	done
done
for verb in $("$bin/postrider" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'); do
	case $verb in version | help) continue ;; esac
	[ -e "docs/man/postrider-$verb.1" ] || complain "no man page for the verb $verb"
done
# A line or table too wide for a terminal of 80 columns: lintian refuses such a package.
if command -v man >/dev/null && command -v groff >/dev/null; then
	for page in docs/man/*.[1-8]; do
		said=$(MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | grep -v 'cannot adjust line' | tr '\n' ' ')
		[ -z "$said" ] || complain "$page: $said"
	done
fi
grep -oE '^- `[a-z]+/`|^\| `[a-z]+/`' README.md | grep -oE '[a-z]+/' | while read -r folder; do
	[ -d "$folder" ] || echo "$folder"
done | while read -r folder; do complain "README.md names $folder, which is not there"; done
# A first page, not a manual: the rest is in docs/GUIDE.md.
[ "$(wc -l <README.md)" -le 150 ] || complain "README.md has more than 150 lines"
# What a document links to is there.
for document in README.md docs/GUIDE.md; do
	for to in $(grep -oE '\]\([^)#]+' "$document" | cut -c 3- | grep -v '^http'); do
		[ -e "$(dirname "$document")/$to" ] || complain "$document links to $to, which is not there"
	done
done
# A source file that a document names exists, by its path from the root or below docs/.
for document in README.md docs/*.md configs/*.md; do
	for path in $(grep -oE '`[A-Za-z0-9_./-]+\.(c|h|sh|py|json|csv|md|1|5|7|8)`' "$document" | tr -d '`' | grep / |
		grep -vE "NAME|GROUP|^/|^build/" | sort -u); do
		[ -e "$path" ] || [ -e "docs/$path" ] || [ -e "$(dirname "$document")/$path" ] ||
			complain "$document names $path, which does not exist"
	done
done
[ $bad = 0 ] && echo "documents are in step"
exit $bad
