#!/bin/sh
# A command whose settings are in a file: `init`, `profile` and `run` fill in its placeholders, for each run in a copy.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
own_home

if [ ! -x "$python" ]; then
	skipped "a command with a file of settings" "there is no $python"
	finish
fi
cd "$dir/w" || exit 1
cat >train.py <<'END'
import re, sys, time
text = open(sys.argv[1].split("=")[-1]).read()
assert "${home}" in text and "{{x}}" in text and "{a: 1}" in text, text
batch, epochs = (int(re.search(name + r": (\d+)", text).group(1)) for name in ("batch_size", "epochs"))
for e in range(1, epochs + 1):
    time.sleep(0.05 + 0.8 / batch)
    print(f"epoch {e}/{epochs} val_acc={0.9 - batch / 1000 - 0.3 / e:.4f}", flush=True)
END
cat >config.yaml.in <<'END'
# left as they are: ${home} {{x}} {a: 1}
train:
  batch_size: {batch}
  epochs: {epochs}
END

# fill itself
expect 0 "fill becomes the command" fill config.yaml.in batch=8 epochs=2 -- "$python" train.py {file}
says out "epoch 2/2" "which reads the values"
expect 6 "a placeholder without a value is refused" fill config.yaml.in batch=8 -- "$python" train.py {file}
says err "config.yaml.in:4: {epochs} has no value" "by file and line"
expect 4 "a file that is not there is named" fill nothing.yaml batch=8 -- "$python" train.py {file}
expect 2 "a command is needed" fill config.yaml.in batch=8

# a folder
expect 2 "a file that no word names is refused" init --yes --template config.yaml.in -- "$python" train.py settings.yaml
says err "no word of the command is config.yaml.in" "and named"
expect 0 "init takes a file of settings" init --yes --name t --template config.yaml.in --factor batch=8,16,64 --factor epochs=1,2,4 \
	--factor njobs=1 -- "$python" train.py config.yaml
that "the trial had them in a copy of its own" grep -q 'batch_size: 16' t-postrider/logs/trial.copy-1.config.yaml
expect 0 "profile fills it in for each run" profile t-postrider --no-mixed --budget 8s
that "the copies differ" test "$(cat t-postrider/logs/*.config.yaml t-postrider/runs.csv.profile/logs/*.config.yaml 2>/dev/null |
	grep batch_size | sort -u | wc -l)" -ge 2
expect 0 "run has it, too" run t-postrider --slo 1m --epochs 3 --json
json "$dir/out" "with the epochs that were asked for" "d['verdict'] == 'promised' and d['job']['state'] == 'done' and d['job']['epochs'] == 3"

# without a folder
expect 0 "run takes a file of settings" run --template config.yaml.in --slo 1m --epochs 2 -- "$python" train.py --config=config.yaml
says err "limit met" "and knows the command"
expect 0 "again" run --template config.yaml.in --slo 1m --epochs 2 -- "$python" train.py --config=config.yaml
says err "is promised" "from the second run on with a promise"
expect 2 "a folder has its file already" run t-postrider --template config.yaml.in --slo 1m
echo 'batch_size: 64' >plain.yaml
expect 6 "a file without a placeholder is refused" run --template plain.yaml --slo 1m -- "$python" train.py plain.yaml
says err "plain.yaml has no placeholder" "and named"
finish
