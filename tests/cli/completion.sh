#!/bin/sh
# Completion in bash: every verb and option there is, and the job types, jobs and models of the daemon at hand.
. tests/cli/lib.sh
. tests/cli/daemon_lib.sh
if ! command -v bash >/dev/null; then
	skipped "completion" "needs bash"
	finish
fi
POSTRIDER_SOCKET=$dir/postrider.sock
export POSTRIDER_SOCKET
cat >"$dir/complete.bash" <<'END'
# complete.bash FILE WORD...: what may stand for the last word
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { :; }
_postrider
printf '%s\n' "${COMPREPLY[@]}"
END
file=$PWD/configs/postrider.bash-completion
completed() { (cd "$dir" && PATH=$BIN:$PATH bash "$dir/complete.bash" "$file" postrider "$@" >"$dir/out" 2>&1); }
has() { grep -qxF -e "$1" "$dir/out"; }

missing=
completed ""
for verb in $("$postrider" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'); do
	completed ""
	has "$verb" || missing="$missing $verb"
	completed "$verb" -
	for option in $("$postrider" "$verb" --help | grep -oE -- '^ +(-.,)? *--[a-z][a-z-]+' | grep -oE -- '--.*'); do
		has "$option" || missing="$missing $verb:$option"
	done
done
if [ -z "$missing" ]; then ok "every verb and option is completed"; else not_ok "every verb and option is completed" "$missing"; fi

completed submit ""
that "submit: the job types" has nap
that "submit: all of them" has abroad
completed submit na
that "submit: those that begin so" sh -c "[ \"\$(cat '$dir/out')\" = nap ]"
completed list --type ""
that "list --type: the job types" has abroad
submitted --set nap=30 && one=$id
for verb in status explain logs cancel wait watch; do
	completed $verb ""
	that "$verb: the jobs" has "$one"
done
completed submit nap --after ""
that "submit --after: the jobs that have not ended" has "$one"
for verb in predict evaluate "model show" "model verify"; do
	# shellcheck disable=SC2086 # two words
	completed $verb ""
	that "$verb: models" has m.model
	that "$verb: and no other files" sh -c "! grep -qx config.json '$dir/out'"
done
completed doctor -
that "doctor: its options" has --json
POSTRIDER_SOCKET=$dir/nowhere
completed submit ""
that "without a daemon nothing, and no complaint" sh -c "[ -z \"\$(cat '$dir/out')\" ]"
finish
