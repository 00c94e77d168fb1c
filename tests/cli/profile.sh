#!/bin/sh
# postrider profile: a designed experiment on a command, crash-safe. The command is a stand-in that takes a few
# hundredths of a second; the last claims use the real training job where it was built.
# shellcheck disable=SC2016,SC1083 # dollars and braces are for the command, not for this shell
. tests/cli/lib.sh
t=$dir/t.csv
fake=$dir/fake
marks=$dir/marks
mkdir "$marks"

# fake BATCH NETWORK [SECONDS]: an epoch or two as JSON lines, and a mark of when it ran
cat >"$fake" <<END
#!/bin/sh
echo "talk of batch \$1" >&2
from=\$(date +%s%N)
sleep \${3:-0.02}
echo '{"event":"epoch","epoch":1,"loss":0.7,"accuracy":0.5,"elapsed_s":0.01}'
echo 'a line that is no JSON'
echo "{\"event\":\"epoch\",\"epoch\":2,\"loss\":0.4,\"accuracy\":0.6,\"elapsed_s\":0.02}"
echo "{\"event\":\"result\",\"accuracy\":0.\$((9500 - \$1)),\"seed\":\${4:-0}}"
echo "\$from \$(date +%s%N) \$1 \$2 \${4:-0}" >"$marks/\$\$"
END
chmod +x "$fake"
cat >"$dir/d.json" <<END
{"factors": {"batch": [64, 512], "njobs": [1, 3], "network": ["lenet5", "simplenet"]},
 "fixed": {"cpus": 2, "epochs": 2}, "design": "full", "replications": 2, "seed": 4, "max_spread": 0,
 "command": ["$fake", "{batch}", "{network}", "0.02", "{seed}"], "timeout_s": 20}
END
rows() { tail -n +2 "$1" | wc -l | tr -d ' '; }
lines() { wc -l <"$1" | tr -d ' '; }

# ---- the plan ----
expect 0 "a dry run prints the plan" profile "$dir/d.json" -n -o "$t"
says out "16 runs of 8 settings, seed 4; 0 done" "the plan counts runs and settings"
says out "The first command: $fake " "the plan shows a command"
that "a dry run leaves nothing behind" test ! -e "$t" -a ! -e "$t.profile"
cp "$dir/out" "$dir/plan"
run profile "$dir/d.json" -n -o "$t"
same "$dir/out" "$dir/plan" "the same seed, the same order"
expect 0 "the plan as JSON" profile "$dir/d.json" -n --json --seed 9 -o "$t"
json "$dir/out" "JSON plan: every setting once a replication, in random order" \
	"len(d['runs']) == 16 and len({(r['replication'], str(r['setting'])) for r in d['runs']}) == 16 and
	 [r['setting'] for r in d['runs'][:8]] != [r['setting'] for r in d['runs'][8:]] and d['left_s'] is None"
run profile "$dir/d.json" -n --json --design lhs:5 --replications 1 -o "$t"
json "$dir/out" "a Latin hypercube has as many runs as asked for" "len(d['runs']) == 5 and d['settings'] == 5"
run profile "$dir/d.json" -n --json --design 2k --factor batch=64,128,256 -o "$t"
json "$dir/out" "2k leaves the levels between out" "{r['setting']['batch'] for r in d['runs']} == {64, 256}"

# ---- a whole campaign ----
expect 0 "a campaign runs" profile "$dir/d.json" -o "$t" --curves "$dir/c.csv" --suggest 2
silent err "a campaign that goes well has nothing to complain of"
says out "16 runs of 8 settings: 16 ok" "the summary counts the runs"
says out "time depends on" "the summary has the shares of the factors"
says out "Between replications" "the summary says how noisy the machine is"
says out "Measure next" "the summary suggests what to measure"
that "one row a copy" test "$(rows "$t")" = 32
that "a curve for each copy" test "$(rows "$dir/c.csv")" = 64
that "the columns are those of the default schema, and more" test "$(head -n 1 "$t")" = \
	"network,cpus,njobs,batch,epochs,time_s,accuracy,processes,other_load,cpu_mean,iowait_mean,job_cpu_mean,job_iowait_mean,max_rss_mb,replication,copy,status,started_at"
that "each copy has its own accuracy" test "$(column "$t" accuracy | sort -u | tr '\n' ' ')" = "0.898800 0.943600 "
that "each copy has its own two logs" test "$(find "$t.profile/logs" -name '*.copy-*' | wc -l | tr -d ' ')" = 64
that "no log holds the words of two copies" test "$(cat "$t.profile/logs/"*.err | wc -l | tr -d ' ')" = 32
that "memory was measured" test "$(column "$t" max_rss_mb | awk '$1 > 0' | wc -l | tr -d ' ')" = 32
that "copies of one run overlap in time" awk '{ from[NR] = $1; to[NR] = $2 }
	END { for (i = 1; i <= NR; i++) { n = 0; for (j = 1; j <= NR; j++) n += from[j] < to[i] && from[i] < to[j]
		if (n > 3) exit 1; if (n == 3) three++ } exit three < 12 }' "$marks"/*
that "copies, replications and settings have seeds of their own" test \
	"$(cut -d ' ' -f 5 "$marks"/* | sort -nu | wc -l | tr -d ' ')" = 32
expect 0 "anova reads the table" anova "$t"
silent err "anova knows every column"
expect 0 "train reads the table" train "$t" -n --model forest --set trees=10

expect 0 "a finished campaign is not measured again" profile "$dir/d.json" -o "$t" --json
says err "resuming: 16 of 16 runs" "a finished campaign says so"
json "$dir/out" "JSON: counts, noise, shares" \
	"d['runs'] == d['ok'] == d['resumed'] == 16 and d['failed'] + d['timeout'] + d['unstable'] == 0 and
	 d['noise']['settings'] == 8 and d['noise']['median_cv'] >= 0 and d['problems'] == [] and
	 max(d['anova']['accuracy'], key=lambda t: t['share'])['term'] == 'batch'"
run profile "$dir/d.json" -o "$t" -n
says out "16 done. The rest takes about" "with runs done there is an estimate"

# ---- a changed design ----
expect 6 "a changed design is refused" profile "$dir/d.json" -o "$t" --factor batch=64,256
says err "factor batch was 64,512 and is 64,256" "a changed design is refused by the name of what differs"
expect 6 "a changed seed is refused" profile "$dir/d.json" -o "$t" --seed 5
says err "seed was 4 and is 5" "a changed seed is named"
expect 0 "--restart begins anew" profile "$dir/d.json" -o "$t" --factor batch=64,256 --factor njobs=1 --replications 1 --restart -q
silent out "-q: nothing on stdout"
that "--restart: the new table" test "$(rows "$t")" = 4
that "--restart keeps the old journal" test "$(lines "$t.profile/journal.jsonl.old")" = 17

# ---- killed at any moment ----
k=$dir/k.csv
for after in 0.03 0.11 0.07 0.19 0.02 0.15; do
	"$postrider" profile "$dir/d.json" -o "$k" >/dev/null 2>&1 &
	pid=$!
	sleep "$after"
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
done
done_before=$(($(lines "$k.profile/journal.jsonl") - 1))
expect 0 "killed six times, the same command finishes" profile "$dir/d.json" -o "$k"
says err "resuming: $done_before of 16 runs" "it says where it goes on"
that "every run was measured once" test "$(sed 1d "$k.profile/journal.jsonl" | grep -o '^{"run":[0-9]*' | sort | uniq -c | awk '$1 != 1' | wc -l | tr -d ' ')" = 0
that "every row is there" test "$(rows "$k")" = 32

printf '{"run":3,"status":"o' >>"$k.profile/journal.jsonl"
expect 0 "a torn last line does no harm" profile "$dir/d.json" -o "$k"
says err "the last line was torn (20 bytes)" "a torn last line is reported"
expect 0 "and it is gone afterwards" profile "$dir/d.json" -o "$k" -q
silent err "the journal is whole again"
sed -i '5s/run/rnu/' "$k.profile/journal.jsonl"
expect 6 "damage in the middle is refused" profile "$dir/d.json" -o "$k"
says err "journal.jsonl:5:" "damage in the middle: the line is named"

# alive PID: it is there, and not as a zombie nobody has collected yet
alive() { [ -r "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"; }
gone() { # PID...: all within two seconds
	for n in 1 2 3 4 5 6 7 8 9 10; do
		left=
		for pid; do alive "$pid" && left=1; done
		[ -z "$left" ] && return 0
		sleep 0.2
	done
	return 1
}
long() { # one run of a command that has a child of its own
	set -- profile --factor batch=64,65 -o "$dir/long.csv" -- \
		sh -c 'sleep 30 & echo $$ $! >"$1.new"; mv "$1.new" "$1"; wait' {batch} "$dir/pids"
	exec "$postrider" "$@"
}
long >/dev/null 2>&1 &
pid=$!
n=0
while [ ! -s "$dir/pids" ] && [ $n -lt 100 ]; do sleep 0.02; n=$((n + 1)); done
(long >"$dir/out" 2>"$dir/err")
code=$? ran="profile, twice"
code_is 8 "two at once on one journal are refused"
kill -9 "$pid"
wait "$pid" 2>/dev/null
# shellcheck disable=SC2046 # two words are meant
that "a killed profile leaves no copy behind, nor what a copy started" gone $(cat "$dir/pids")

# ---- Ctrl-C ----
if env --default-signal=INT true 2>/dev/null; then
	printf '%s' '{"factors": {"s": [0, 30]}, "command": ["sh", "-c", "echo $$ >$1; exec sleep $0", "{s}", "'"$dir/slow.pid-{s}"'"]}' \
		>"$dir/slow.json"
	env --default-signal=INT "$postrider" profile "$dir/slow.json" -o "$dir/int.csv" >"$dir/out" 2>"$dir/err" &
	pid=$!
	n=0
	while [ ! -s "$dir/slow.pid-30" ] && [ $n -lt 200 ]; do sleep 0.02; n=$((n + 1)); done
	kill -INT "$pid"
	wait "$pid"
	code=$? ran="profile interrupted"
	code_is 130 "Ctrl-C: exit code 130"
	says err "are saved in $dir/int.csv.profile/journal.jsonl; the same command continues" "Ctrl-C: what is saved and how to go on"
	that "Ctrl-C: nothing of the dropped run is in the journal" test "$(lines "$dir/int.csv.profile/journal.jsonl")" -le 2
	that "Ctrl-C: no copy is left behind" gone "$(cat "$dir/slow.pid-30")"
	[ -e "$dir/int.csv" ] || echo >"$dir/int.csv" # the long run may have come first
	that "Ctrl-C: the table has what was finished" test "$(rows "$dir/int.csv")" = "$(($(lines "$dir/int.csv.profile/journal.jsonl") - 1))"
else
	skipped "Ctrl-C: exit code 130" "needs env --default-signal"
fi

# ---- failures ----
f=$dir/f.csv
expect 1 "a failing command: exit code 1 after the rest" profile --factor batch=1,2,3,4 --factor njobs=2 --factor cpus=1 \
	--factor network=x --max-spread 0 -o "$f" -- sh -c 'echo no luck >&2; echo "{{\"accuracy\":0.5}"; exit $(($1 == 2 ? 7 : 0))' sh {batch}
says out "3 ok, 1 failed" "failures are counted"
says out "ended with exit code 7: no luck" "a failure is explained with the command's last words"
that "failed rows are marked and have no time" test "$(awk -F, '$4 == 2 { print $5 $6 $(NF - 1) }' "$f" | sort -u)" = failed
that "the others are there" test "$(column "$f" status | grep -c ok)" = 6
expect 0 "anova goes on without them" anova "$f"
says err "2 rows" "anova says what it leaves out"
expect 1 "failures are not forgotten" profile --factor batch=1,2,3,4 --factor njobs=2 --factor cpus=1 \
	--factor network=x --max-spread 0 -o "$f" --json -- sh -c 'echo no luck >&2; echo "{{\"accuracy\":0.5}"; exit $(($1 == 2 ? 7 : 0))' sh {batch}
json "$dir/out" "JSON: the problem is there" \
	"d['failed'] == 1 and d['problems'][0]['status'] == 'failed' and d['problems'][0]['setting'] == {'batch': 2}"
run profile --factor batch=1,2,3,4 --factor njobs=2 --factor cpus=1 --factor network=x --max-spread 0 -o "$f" --retry \
	-- sh -c 'echo no luck >&2; echo "{{\"accuracy\":0.5}"; exit $(($1 == 2 ? 7 : 0))' sh {batch}
says out "run-000" "--retry measures a failure once more"
says out "try-2" "--retry: the second try has logs of its own"

expect 1 "a run over its time limit" profile --factor batch=1,2 --timeout 1s -o "$dir/time.csv" -- \
	sh -c 'if [ "$1" = 2 ]; then trap "" TERM; sleep 20; fi' sh {batch}
says out "1 over the time limit" "the time limit is in the summary"
that "the time limit is in the table" test "$(column "$dir/time.csv" status | sort | tr '\n' ' ')" = "ok timeout "

expect 0 "copies that spread too much are unstable, and the others are good" profile --factor batch=1,2 --factor njobs=2 --tries 2 --max-spread 0.8 \
	-o "$dir/u.csv" -- sh -c 'sleep 0.$(($1 * $2 == 4 ? 80 : 20))' sh {batch} {copy}
says out "1 unstable" "unstable runs are counted"
expect 0 "they are quiet" profile --factor batch=1,2 --factor njobs=2 --tries 2 --max-spread 0.8 -q \
	-o "$dir/u.csv" -- sh -c 'sleep 0.$(($1 * $2 == 4 ? 80 : 20))' sh {batch} {copy}
says err "1 of 2 runs stayed unstable and is left out of the table; --retry" "but for what is left out"
that "unstable runs are marked" test "$(column "$dir/u.csv" status | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" = "2 ok 2 unstable "
that "unstable runs have no time in the table" test "$(awk -F, '/unstable/ { print $3 }' "$dir/u.csv" | tr -d '\n')" = ""
that "they were tried as often as asked" test "$(lines "$dir/u.csv.profile/journal.jsonl")" = 4

expect 1 "a promised accuracy that is not there is a failure" profile --factor batch=1,2 --accuracy top1 -o "$dir/a.csv" -- "$fake" {batch} x
says out "printed no accuracy" "a missing accuracy is named"
expect 0 "an accuracy by regular expression" profile --factor batch=1,2 --max-spread 0 --regex 'acc=([0-9.]+)' -o "$dir/re.csv" \
	-- echo 'acc=0.{batch}5'
that "the expression's group is the accuracy" test "$(column "$dir/re.csv" accuracy | sort | tr '\n' ' ')" = "0.150000 0.250000 "

expect 0 "an accuracy in text is found without being told" profile --factor batch=1,2 --max-spread 0 -o "$dir/text.csv" \
	--curves "$dir/text-curves.csv" -- printf 'epoch 1/2 acc=0.{batch}1 val_acc=0.{batch}0\nepoch 2/2 acc=0.{batch}2 val_acc=0.{batch}5\n'
that "the held-out one is taken" test "$(column "$dir/text.csv" accuracy | sort | tr '\n' ' ')" = "0.150000 0.250000 "
that "text gives a curve, too" test "$(lines "$dir/text-curves.csv")" = 5
expect 0 "what profile wrote trains as it is" train "$dir/text.csv" -o "$dir/text.model" -q --policy postrider
expect 0 "a hypercube with a setting twice" profile --factor batch=1,2 --factor width=1,2 --factor epochs=2 --design lhs:6 --max-spread 0 -q \
	-o "$dir/twice.csv" --curves "$dir/twice-curves.csv" -- printf 'epoch 1 acc=0.{batch}{width}\nepoch 2 acc=0.{batch}{width}5\n'
expect 0 "it trains with its curves, and its own factors" train "$dir/twice.csv" -q -o "$dir/twice.model" \
	--curves "$dir/twice-curves.csv"
run model show "$dir/twice.model"
says out "width" "a factor of one's own is in the model"
expect 0 "a fixed value is added without measuring again" profile --factor batch=1,2 --factor width=1,2 --factor epochs=2 --design lhs:6 \
	--max-spread 0 --factor data=mine -o "$dir/twice.csv" --curves "$dir/twice-curves.csv" \
	-- printf 'epoch 1 acc=0.{batch}{width}\nepoch 2 acc=0.{batch}{width}5\n'
says out "6 of them were measured before" "a fixed value is added: nothing is measured"
that "a fixed value is added: it is a column" grep -q mine "$dir/twice.csv"
expect 0 "a percentage" profile --factor batch=1,2 --max-spread 0 -o "$dir/percent.csv" -- echo 'Test accuracy: {batch}5.5'
that "a percentage becomes a share" test "$(column "$dir/percent.csv" accuracy | sort | tr '\n' ' ')" = "0.155000 0.255000 "
says err "taken as percent" "a percentage is said"
expect 0 "no accuracy" profile --factor batch=1,2 --max-spread 0 -o "$dir/none.csv" -- echo 'nothing {batch}'
says err "no accuracy was found in the output of the first run" "no accuracy: said after the first run"
says out "No accuracy was found in the output of any run" "no accuracy: said at the end"
expect 0 "--command is split into words without a shell" profile --factor batch=1,2 --max-spread 0 --regex '([0-9.]+)' \
	-o "$dir/sh.csv" --command "echo '0.{batch}5 ; exit 3'"
that "no shell has seen it" grep -qF '; exit 3' "$dir/sh.csv.profile/logs/run-0001.try-1.copy-1.out"

expect 0 "a warm-up goes before the first run" profile --factor batch=1,2 --max-spread 0 --warm-up -o "$dir/w.csv" -- echo {batch}
that "a warm-up is not in the table" test "$(rows "$dir/w.csv")" = 2 -a -e "$dir/w.csv.profile/logs/warm-up.copy-1.out"

# ---- a full disk ----
(ulimit -f 8; exec "$postrider" profile --factor batch=1,2,3 --factor njobs=24 --max-spread 0 -o "$dir/full.csv" -- true {batch}) \
	>"$dir/out" 2>"$dir/err"
code=$? ran="profile with a limit on the size of files"
code_is 1 "a journal that can not grow stops the campaign"
says err "the same command continues there" "a full disk: what is saved is said"
expect 0 "with room again it goes on" profile --factor batch=1,2,3 --factor njobs=24 --max-spread 0 -o "$dir/full.csv" -- true {batch}
that "a full disk has cost no row" test "$(rows "$dir/full.csv")" = 72

# ---- suggestions from a model ----
run train "$t" -o "$dir/t.model" --model forest --set trees=20 -q
expect 0 "a model says what is least certain" profile "$dir/d.json" -o "$k" --restart -q --json --suggest 3 --model "$dir/t.model"
json "$dir/out" "suggestions of a model: as many as asked for, extrapolations first" \
	"len(d['suggestions']) == 3 and d['suggestions'][0]['extrapolated']"

# Networks and GPUs of which one pair was never measured: one short run of it is worth most.
awk 'BEGIN { srand(3)
	print "network,gpu,cpus,njobs,batch,epochs,time_s,accuracy,other_load,cpu_mean,job_cpu_mean,max_rss_mb,replication,copy,status,started_at"
	for (n = 1; n <= 3; n++) for (g = 1; g <= 3; g++) { suits = exp(rand() - 0.5)
		for (k = 0; k < 12 && n + g < 6; k++) { b = 64 * 2 ^ (k % 3); e = 1 + int(k / 3) * 3
			printf "n%d,g%d,1,1,%d,%d,%.6f,0.8,0,,,,1,1,ok,\n", n, g, b, e, e * n / g * (1 + 64 / b) * suits * (0.97 + 0.06 * rand()) } } }' \
	>"$dir/pairs.csv"
run train "$dir/pairs.csv" -o "$dir/pairs.model" --model gp -q
expect 0 "a model says which runs are worth most" profile --factor network=n1,n2,n3 --factor gpu=g1,g2,g3 --factor batch=64,256 \
	--factor epochs=1,10 --factor cpus=1 -o "$dir/pairs-out.csv" -q --json --suggest 4 --model "$dir/pairs.model" -- true {network} {gpu} {batch} {epochs}
json "$dir/out" "the short run of the new context comes first, and is worth more than one of a known context" \
	"(lambda s: s[0]['new_context'] and s[0]['setting'] | {'batch': 0} == {'network': 'n3', 'gpu': 'g3', 'batch': 0, 'epochs': 1} and
	 max(x['value'] for x in s if x['new_context']) > max([x['value'] for x in s if not x['new_context']] + [0]))(d['suggestions'])"

# The same beside the work of others: a setting that was measured is not outside the table because nobody says how much.
awk -F, -v OFS=, 'NR > 1 { $9 = 2 + NR % 10 / 10 } { print }' "$dir/pairs.csv" >"$dir/busy.csv"
run train "$dir/busy.csv" -o "$dir/busy.model" --model gp -q
run profile --factor network=n1,n2,n3 --factor gpu=g1,g2,g3 --factor batch=64,256 --factor epochs=1,10 --factor cpus=1 \
	-o "$dir/pairs-out.csv" -q --json --suggest 36 --model "$dir/busy.model" -- true {network} {gpu} {batch} {epochs}
json "$dir/out" "measured settings are inside the table of a busy machine" \
	"(lambda s: len(s) > 20 and not any(x['extrapolated'] for x in s))([x for x in d['suggestions'] if not x['new_context']])"

# ---- bad input ----
expect 2 "no output: usage" profile "$dir/d.json"
expect 2 "-o - is refused" profile "$dir/d.json" -o -
expect 2 "no command: usage" profile --factor batch=1,2 -o "$dir/x.csv"
expect 2 "two commands: usage" profile --factor batch=1,2 -o "$dir/x.csv" --command true -- true
expect 2 "a factor without levels: usage" profile --factor batch= -o "$dir/x.csv" -- true
expect 2 "no such kind of design: usage" profile --factor batch=1,2 --design half -o "$dir/x.csv" -- true {batch}
expect 2 "a spread that is none: usage" profile --factor batch=1,2 --max-spread wide -o "$dir/x.csv" -- true {batch}
expect 2 "--model without --suggest: usage" profile "$dir/d.json" -o "$dir/x.csv" --model m
expect 6 "a factor the command does not use is refused" profile --factor batch=1,2 -o "$dir/x.csv" -- true
says err "the command has no {batch}" "and named"
expect 6 "an unknown placeholder is refused" profile --factor batch=1,2 -o "$dir/x.csv" -- true {batch} {btach}
says err "did you mean {batch}?" "and the nearest one named"
printf '{"factors":{"batch":[1,2]},"replication":3,"command":["true","{batch}"]}' >"$dir/bad.json"
expect 6 "an unknown key is refused" profile "$dir/bad.json" -o "$dir/x.csv"
says err "replications" "and the nearest one named in a design"
printf '{"factors":{"batch":[1,2]},' >"$dir/bad.json"
expect 6 "broken JSON is refused" profile "$dir/bad.json" -o "$dir/x.csv"
says err "bad.json:1:" "with its place"
expect 4 "a design that is not there" profile "$dir/none.json" -o "$dir/x.csv"
expect 4 "a program that is not there" profile --factor batch=1,2 -o "$dir/x.csv" -- "$dir/no-such-program" {batch}
says err "no-such-program" "a program that is not there is named"
expect 1 "an output folder that is not there" profile --factor batch=1,2 -o "$dir/no/x.csv" -- true {batch}
that "none of these left a table" test ! -e "$dir/x.csv"
echo precious >"$dir/mine.csv"
expect 2 "a table of somebody else's is not written over" profile --factor batch=1,2 -o "$dir/mine.csv" -- true {batch}
that "it is as it was" test "$(cat "$dir/mine.csv")" = precious -a ! -e "$dir/mine.csv.profile"

# ---- the real job ----
if [ -x "$BIN/postrider-train" ]; then
	expect 0 "the reference job is profiled" profile --factor batch=64,256 --factor network=simplenet --factor cpus=1 \
		--factor epochs=1 --factor samples=600 --max-spread 0 --timeout 60s --accuracy accuracy -o "$dir/real.csv" \
		--curves "$dir/real-curves.csv" -- "$BIN/postrider-train" --network {network} --batch {batch} --workers {cpus} \
		--epochs {epochs} --samples {samples} --seed {seed} --json
	that "the reference job: time and accuracy of each run" test \
		"$(awk -F, 'NR > 1 && $7 > 0 && $8 > 0 && $8 <= 1' "$dir/real.csv" | wc -l | tr -d ' ')" = 2
	that "the reference job: its phases are within its time" test "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["compute_s"] > 0 && $at["fetch_s"] + $at["compute_s"] + $at["sync_s"] < $at["time_s"]' "$dir/real.csv" | wc -l | tr -d ' ')" = 2
	expect 0 "train reads phases" train "$dir/real.csv" -n --model queueing
	that "phases are known columns" sh -c '! grep -q ignored "$1"' sh "$dir/err"
else
	skipped "the reference job is profiled" "build/postrider-train was not built"
fi
finish
