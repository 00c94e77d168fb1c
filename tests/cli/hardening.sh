#!/bin/sh
# The programs are built to make attacks hard, and the service unit takes away what the daemon does not need.
. tests/cli/lib.sh
if [ -n "${SAN:-}" ] || ! command -v readelf >/dev/null; then
	skipped "the programs are hardened" "a sanitizer, or no readelf"
	finish
fi
for p in postrider postrider-lab postrider-automl postriderd postrider-supervisor postrider-train; do
	readelf -hldnsW "$BIN/$p" >"$dir/elf" 2>/dev/null
	that "$p is position-independent" grep -qE 'Type: +DYN' "$dir/elf"
	that "$p has read-only relocations" grep -q 'GNU_RELRO' "$dir/elf"
	that "$p binds its symbols at the start" grep -qE 'BIND_NOW|Flags:.* NOW' "$dir/elf"
	that "$p guards its stacks" grep -q '__stack_chk_fail' "$dir/elf"
	that "$p checks calls of the C library" grep -qE '__(memcpy|snprintf|vsnprintf|printf|fprintf|read)_chk' "$dir/elf"
	that "$p has no executable stack" sh -c "! grep GNU_STACK '$dir/elf' | grep -q 'RWE'"
	if [ "$(uname -m)" = x86_64 ]; then
		that "$p marks where jumps may go" sh -c "objdump -d --no-show-raw-insn '$BIN/$p' | grep -q endbr64"
	fi
done
that "the daemon comes back however often it ends" grep -q '^StartLimitIntervalSec=0' configs/systemd/postrider.service
if command -v systemd-analyze >/dev/null && systemd-analyze security --help 2>&1 | grep -q offline; then
	for unit in postrider postrider-page; do
		systemd-analyze security --offline=true configs/systemd/$unit.service >"$dir/exposure" 2>&1
		level=$(sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p' "$dir/exposure")
		that "systemd-analyze security of $unit is below 3 (${level:-none})" \
			awk -v v="${level:-10}" 'BEGIN { exit !(v < 3) }'
	done
else
	skipped "systemd-analyze security is below 3" "no systemd-analyze that looks at a file"
fi
finish
