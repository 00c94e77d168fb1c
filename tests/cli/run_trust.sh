#!/bin/sh
# Whom `run` trusts: a folder runs the command that it was made for, whatever its number says; and only a daemon of
# the same user is told anything.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home
chmod 700 "$dir/runtime"
here() { # postrider in the folder of the script
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}

# ---- two commands with one number ----

here run -q -- echo one --batch-size 8
code_is 0 "a first command runs"
one=$(find "$own" -maxdepth 1 -type d -name 'echo-*')
here run -q -- echo two --batch-size 8
code_is 0 "and another"
two=$(find "$own" -maxdepth 1 -type d -name 'echo-*' ! -path "$one")
# as if both had the number of the first
rm -r "$one"
mv "$two" "$one"
here run -q -- echo one --batch-size 8
code_is 0 "a command whose number another one has runs"
says out one "and it is this command that runs"
here run -q -- echo one --batch-size 8
that "its folder is found again" [ "$(find "$own" -maxdepth 1 -type d -name "$(basename "$one")*" | wc -l)" -eq 2 ]
stop_daemons
sleep 0.3

# ---- a daemon that is killed ----

cat >"$dir/w/seven.sh" <<'END'
#!/bin/sh
echo begins
touch began
sleep 3
echo "accuracy: 0.5"
exit 7
END
chmod +x "$dir/w/seven.sh"
(
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e "$dir/w/began" ] && break; sleep 0.3; done
	for p in /proc/[0-9]*; do
		if { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "postriderd --config $dir"; then
			kill -9 "${p#/proc/}"
		fi
	done
) &
here run -- ./seven.sh --batch-size 8
wait
code_is 7 "the exit code of a command outlives the daemon"
says err "your daemon has gone; job " "what happened is said"
says out "accuracy: 0.5" "and so does its output"
that "which is there once" [ "$(grep -c begins "$dir/out")" -eq 1 ]
stop_daemons
sleep 0.3

# ---- who listens ----

if [ "$(id -u)" -ne 0 ] || ! [ -x "$python" ]; then
	skipped "a daemon of another user is told nothing" "needs root, to be another user, and $python"
	finish
fi
rm -f "$dir/runtime/postrider-run.sock"
"$python" - "$dir/runtime/postrider-run.sock" "$dir/heard" 2>/dev/null <<'END' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
heard = open(sys.argv[2], "wb")
os.setuid(65534)
s.listen()
s.settimeout(20)
while True:
    c, _ = s.accept()
    c.settimeout(1)
    c.sendall(b'{"postrider":"0.1.0","protocol":1,"max_line":65536}\n')
    try:
        heard.write(c.recv(1000)); heard.flush()
    except OSError:
        pass
END
stranger=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -S "$dir/runtime/postrider-run.sock" ] && break; sleep 0.1; done
sleep 0.3
here run -q -- echo one --batch-size 8
kill $stranger 2>/dev/null
that "a daemon of another user is not used" [ "$code" -ne 0 ]
says err "another user (uid 65534, process " "and the message says who listens"
that "it is told nothing" [ ! -s "$dir/heard" ]
rm -f "$dir/runtime/postrider-run.sock"

chown 65534 "$dir/runtime"
here run -q -- echo one --batch-size 8
code_is 0 "a runtime folder of another user is not used"
that "there is no socket in it" [ ! -e "$dir/runtime/postrider-run.sock" ]
chown 0 "$dir/runtime"
chmod 777 "$dir/runtime"
here run -q -- echo one --batch-size 8
that "nor one that others may write to" [ "$code" -eq 0 -a ! -e "$dir/runtime/postrider-run.sock" ]
finish
