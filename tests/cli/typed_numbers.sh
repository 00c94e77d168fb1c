#!/bin/sh
# A number that a user typed into a command is the number that the command gets, is decided with and is recorded:
# `run` and `init` fill in placeholders, nothing else. The script is in the style of PyTorch's examples.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

if [ ! -x "$python" ]; then
	skipped "typed numbers" "there is no $python"
	finish
fi

cat >"$dir/w/main.py" <<'END_OF_SCRIPT'
import argparse, sys, time
p = argparse.ArgumentParser(description="Example")
p.add_argument("--batch-size", type=int, default=64, metavar="N")
p.add_argument("--epochs", type=int, default=14, metavar="N")
args = p.parse_args()
print("argv:", *sys.argv[1:])
for epoch in range(1, args.epochs + 1):
    time.sleep(0.002 + 0.16 / args.batch_size)
    right = int(10000 * (1 - 0.5 / (1 + 8 * epoch / args.batch_size ** 0.5)))
    print("Train Epoch: {} [59520/60000 (99%)]\tLoss: 0.08".format(epoch))
    print("Test set: Average loss: 0.0483, Accuracy: {}/10000 ({:.0f}%)".format(right, right / 100), flush=True)
END_OF_SCRIPT

here() { # postrider in the folder of the script
	(cd "$dir/w" && "$postrider" "$@") >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	ran="$*"
}
recorded() { # EPOCHS CLAIM: of the last job
	"$postrider" list --json --all >"$dir/list.json" 2>/dev/null
	json "$dir/list.json" "$2" "max(d['jobs'], key=lambda j: int(j['job']))['epochs'] == $1"
}

# ---- epochs ----

here run --slo 8m -- python3 main.py --batch-size '{batch}' --epochs 14
code_is 0 "14 epochs: run"
says out "argv: --batch-size 64 --epochs 14" "14 epochs: the command gets 14"
says err "epochs     14" "14 epochs: the decision names them"
says err "14 epochs after" "14 epochs: the last line names them"
recorded 14 "14 epochs: they are in the record"
here run --slo 8m -- python3 main.py --batch-size '{batch}' --epochs=3
says out "--epochs=3" "another number, with =: the command gets it"
for n in 1 2 4 10; do
	here run --slo 8m -- python3 main.py --batch-size '{batch}' --epochs $n
	says out "--epochs $n" "$n epochs on a later run: the command gets $n"
	recorded $n "$n epochs on a later run: they are in the record"
done
here run --slo 8m -- python3 main.py --batch-size '{batch}' --epochs '{epochs}'
says out "--epochs 10" "an open {epochs} is what was shown last"
here run --slo 8m --epochs 5 -- python3 main.py --batch-size '{batch}' --epochs '{epochs}'
says out "--epochs 5" "--epochs fills {epochs}"
here run --slo 8m --epochs 5 -- python3 main.py --batch-size '{batch}' --epochs 14
code_is 2 "two numbers of epochs for one command are refused"
says err "the command says 14 epochs, and --epochs 5" "and both are named"
(cd "$dir/w" && cp main.py fresh.py)
here run --slo 8m --epochs 1..5 -- python3 fresh.py --batch-size '{batch}' --epochs '{epochs}'
code_is 2 "a range without a model to choose by is a question"
says err "how many? Give one number" "and it is asked"
(cd "$dir/w" && cp main.py other.py)
here run --slo 8m -- python3 other.py --batch-size '{batch}' --epochs '{epochs}'
code_is 2 "{epochs} of a command without any number is a question"
says err "how many epochs? Add --epochs N" "and it says what to add"

# ---- the batch ----

here run --slo 8m -- python3 main.py --batch-size 64 --epochs 2
says out "argv: --batch-size 64 --epochs 2" "a batch that was typed is kept"
says err "the batch size 64 of the command is kept; write {batch} there" "and it says how to have it chosen"
for n in 128 48 2000 16; do # far from all that was measured nothing is promised, and that is said
	here run --slo 8m --best-effort -- python3 main.py --batch-size $n --epochs 2
	says out "argv: --batch-size $n --epochs 2" "batch $n is kept on a later run, measured before or not"
done

# ---- init, profile, and a model ----

here init --yes --json -- python3 main.py --batch-size '{batch}' --epochs 14
code_is 0 "init"
here run main-postrider --slo 8m
says out "--epochs 14" "init with 14 epochs: run of its folder trains 14"
here init --yes --json --name chosen --factor epochs=1,2,4 --factor batch=16,64,256 -- python3 other.py --batch-size '{batch}' --epochs '{epochs}'
here profile chosen-postrider -q
code_is 0 "profile"
here run chosen-postrider --slo 8m
says err "is promised" "after profile there is a promise"
says out "argv: --batch-size 16 --epochs 4" "{epochs} without a number is the range that was measured: the most accurate pair"
here run chosen-postrider --slo 8m --epochs 2
says out "argv: --batch-size 16 --epochs 2" "a number of epochs is that number, with a model, too"
here run chosen-postrider --slo 8m --epochs 5
says out "--epochs 5" "more epochs than were measured are a question of the bounds, not of a range"
here run chosen-postrider --slo 8m --epochs 1..2
says out "--epochs 2" "a range is chosen from"
stop_daemons
finish
