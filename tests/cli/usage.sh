#!/bin/sh
# What every verb has in common: help, unknown words, streams.
# shellcheck disable=SC2086 # lists of words are meant
. tests/cli/lib.sh

run
code_is 2 "no verb at all is a usage error"
silent out "no verb: help is talk, so it goes to stderr"
says err "usage: postrider VERB" "no verb: the help is shown"
for how in --help -h help; do
	expect 0 "postrider $how succeeds" $how
	says out "usage: postrider VERB" "postrider $how: help on stdout"
done
for verb in train evaluate predict anova automl model replay compare report trace version; do
	says out "  $verb " "the help lists $verb"
done
for verb in train evaluate predict anova automl model replay compare report trace version; do
	expect 0 "$verb --help succeeds" $verb --help
	says out "postrider $verb" "$verb --help shows how to call it"
	cp "$dir/out" "$dir/long"
	expect 0 "help $verb succeeds" help $verb
	same "$dir/out" "$dir/long" "help $verb says what $verb --help says"
	expect 0 "$verb -h succeeds" $verb -h
done

expect 2 "an unknown verb is a usage error" trian
says err "'train'" "an unknown verb: the nearest one is named"
expect 2 "another unknown verb is a usage error" comprae
says err "'compare'" "another unknown verb: the nearest one is named"
expect 2 "help of an unknown verb is a usage error" help predcit
says err "'predict'" "help of an unknown verb: the nearest one is named"
expect 2 "an option before the verb is a usage error" --json train
expect 2 "an unknown option is a usage error" train x.csv -o m --treads 2
says err "--threads" "an unknown option: the nearest one is named"
silent out "a usage error leaves stdout empty"
expect 2 "an unknown letter is a usage error" train x.csv -Z
expect 2 "an option without its value is a usage error" train x.csv -o
says err "-o FILE" "an option without its value: shown as it should be"
expect 2 "a value for a flag is a usage error" train x.csv --json=yes
expect 2 "an argument too many is a usage error" train a.csv b.csv -o m
says err "b.csv" "an argument too many is named"
expect 2 "an argument too few is a usage error" evaluate only.model
expect 2 "a seed that is no number is a usage error" train x.csv -o m --seed -1
expect 2 "a confidence of 1 is a usage error" predict m --job a=1 --confidence 1
expect 2 "a confidence of 0% is a usage error" predict m --job a=1 --confidence 0%
expect 2 "a limit of nothing is a usage error" predict m --job a=1 --slo 0
expect 2 "a limit that is no duration is a usage error" predict m --job a=1 --slo soon

expect 0 "version succeeds" version
says out "postrider 0." "version: name and number"
cp "$dir/out" "$dir/version"
run --version
same "$dir/out" "$dir/version" "--version says what version says"
expect 0 "version --json succeeds" version --json
json "$dir/out" "version --json: program, version, model format" \
	"d['program'] == 'postrider' and d['version'][0].isdigit() and d['model_format'] >= 1"

(set +u; exec "$postrider" train --help) | head -n 1 >"$dir/out" 2>"$dir/err"
says out "usage:" "a reader that leaves early still gets what it wanted"
silent err "a reader that leaves early causes no complaint"
# ---- two programs: the client starts without the libraries of those that compute ----
if [ -z "${SAN:-}" ] && command -v readelf >/dev/null; then
	that "the client needs the C library and cJSON alone" sh -c "! readelf -d '$postrider' | grep NEEDED | grep -vqE 'lib(c|m|cjson)[.]so'"
fi
mkdir -p "$dir/installed/bin" "$dir/installed/libexec/postrider"
cp "$postrider" "$dir/installed/bin/"
"$dir/installed/bin/postrider" version >"$dir/out" 2>"$dir/err"
code=$? ran="version, without postrider-lab"
code_is 1 "without postrider-lab a verb that computes fails"
says err "'version' needs postrider-lab, which is neither beside this program" "and says what is missing"
that "help is there without it" sh -c "'$dir/installed/bin/postrider' --help | grep -q compare"
cp "$BIN/postrider-lab" "$dir/installed/libexec/postrider/"
that "installed as make install does, it is found" sh -c "'$dir/installed/bin/postrider' version | grep -q postrider"
that "also through a link" sh -c "ln -s '$dir/installed/bin/postrider' '$dir/link' && '$dir/link' help train | grep -q 'postrider train'"
"$BIN/postrider-lab" submit >"$dir/out" 2>"$dir/err"
code=$? ran="postrider-lab submit"
code_is 2 "postrider-lab has no verbs of the client"
# ---- campaigns are a program of their own ----
"$dir/installed/bin/postrider" help automl >"$dir/out" 2>"$dir/err"
code=$? ran="help automl, without postrider-automl"
code_is 1 "without postrider-automl there are no campaigns"
says err "'automl' needs postrider-automl, which is neither beside this program" "and the message says so"
cp "$BIN/postrider-automl" "$dir/installed/libexec/postrider/"
that "installed, it is found" sh -c "'$dir/installed/bin/postrider' help automl | grep -q 'postrider automl CAMPAIGN.ini'"
for verb in train submit ''; do
	"$BIN/postrider-automl" $verb >"$dir/out" 2>"$dir/err"
	code=$? ran="postrider-automl $verb"
	code_is 2 "postrider-automl has no verb '$verb'"
done
if [ -z "${SAN:-}" ] && command -v readelf >/dev/null; then
	for p in postrider postrider-lab postriderd; do
		that "$p is linked without what campaigns need" sh -c "! readelf -d '$BIN/$p' | grep -q 'libsvm' &&
			! readelf -sW '$BIN/$p' | grep -qE ' (campaign_read|technique_all|automl_run|verb_automl)\$'"
	done
	that "postrider-automl has it" sh -c "readelf -d '$BIN/postrider-automl' | grep -q 'libsvm' &&
		readelf -sW '$BIN/postrider-automl' | grep -q ' technique_all\$'"
fi
finish
