#!/bin/sh
# Commands that are not as one would like them: with a loss alone, with a perplexity, with steps instead of epochs, with an F1,
# without any number, and one that must run alone.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

if [ ! -x "$python" ]; then
	skipped "awkward commands" "there is no $python"
	finish
fi
cat >"$dir/w/train.py" <<'END_OF_SCRIPT'
import sys, time
a = dict(zip(sys.argv[2::2], sys.argv[3::2]))
batch, n, kind = int(a["--bs"]), int(a.get("--n", 3)), sys.argv[1]
for i in range(0, n, 50) if kind == "steps" else range(1, n + 1):
    time.sleep(0.05 + 0.8 / batch)
    if kind == "loss":
        print(f"epoch {i}: loss {2 / (i + 1) + batch / 500:.4f}")
    if kind == "ppl":
        print(f"| end of epoch {i:3d} | time: 0.05s | valid loss {5 / i:5.2f} | valid ppl {100 / i + batch:8.2f}")
    if kind == "steps":
        print(f"step {i + 50}/{n} eval_f1={1 - 1 / (2 + i / 50):.4f}")
END_OF_SCRIPT
cd "$dir/w" || exit 1

expect 0 "a loss: init" init --yes --name loss --metric loss --goal min --factor batch=8,16,32 --factor epochs=1,3 --factor njobs=1 -- \
	"$python" train.py loss --bs '{batch}' --n '{epochs}'
says out "found as loss, v counts as 1 / (1 + v)" "a loss: it says how it counts"
expect 0 "a loss: profile" profile loss-postrider --budget 4s
expect 0 "a loss: run" run loss-postrider --epochs 3 --slo 20s --json
# 2/4 + batch/500: the smallest loss is that of the smallest batch
json "$dir/out" "a loss: the least is the best" "d['job']['batch'] == 8 and abs(d['job']['accuracy'] - 1 / (1 + 0.5 + 8 / 500)) < 1e-3"

expect 0 "a perplexity: init" init --yes --name ppl --metric ppl --goal min -- "$python" train.py ppl --bs '{batch}'
says out "found as ppl" "a perplexity: it is found"
says out "3 with an accuracy" "a perplexity: its epochs are"

expect 2 "steps: how many is not known" init --yes --name none -- "$python" train.py steps --bs '{batch}' --n '{steps}'
says err "{steps} are taken as {epochs}" "steps: it says so"
expect 0 "steps: run" run --metric eval_f1 --slo 20s --epochs 300 -- "$python" train.py steps --bs '{batch}' --n '{steps}'
says err "accuracy 0.8571" "steps: the last f1 is the result"
expect 0 "steps: more of them" run --metric eval_f1 --slo 60s --epochs 1000 -- "$python" train.py steps --bs '{batch}' --n '{steps}'
says err "60 s at 90 % is promised" "steps: are promised as the work of one run says"

expect 0 "without a number: run" run --slo 20s -- "$python" train.py none --bs '{batch}'
says err "no accuracy found" "without a number: it says so"
expect 0 "without a number: again" run --slo 20s -- "$python" train.py none --bs '{batch}'
says err "is promised" "without a number: times are promised all the same"

expect 0 "alone: run" run --alone --detach -- "$python" train.py none --bs '{batch}' --n 40
expect 0 "alone: the next" run --detach -- "$python" train.py none --bs '{batch}' --n 2
first=$(($(cat "$dir/out") - 1))
"$postrider" list >"$dir/out"
that "alone: nothing starts beside it" sh -c "grep -qE '^ *$((first + 1)) .*queued' '$dir/out'"
"$postrider" cancel "$first" >/dev/null
expect 0 "alone: then the next runs" wait $((first + 1)) --timeout 60s
expect 2 "alone: and so many cpus" run --alone --cpus 1 -- "$python" train.py none --bs '{batch}'
expect 2 "a goal without a metric" init --yes --name none --goal min -- "$python" train.py none --bs '{batch}'
expect 2 "a goal that is none" init --yes --name none --metric loss --goal down -- "$python" train.py none --bs '{batch}'
says err "min or max" "a goal that is none: what there is"
finish
