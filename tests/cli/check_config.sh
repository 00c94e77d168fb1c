#!/bin/sh
# postrider check-config: what is in effect, what is wrong and where.
. tests/cli/lib.sh
unset POSTRIDER_CONFIG POSTRIDER_SOCKET
HOME=$dir XDG_CONFIG_HOME=$dir/etc XDG_STATE_HOME=$dir/state XDG_RUNTIME_DIR=$dir
export HOME XDG_CONFIG_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
config=$dir/c.json

# write MEMBERS: a configuration that is right, with these members put in front
write() {
	printf '{%s\n"socket": "%s/s", "state_dir": "%s/state", "slots": 2}\n' "$1" "$dir" "$dir" >"$config"
}
type='"types": {"t": {"argv": ["sh", "{batch}"], "batches": [64, 128]}},'

# ---- a good one ----
write "\"policy\": \"naive\", $type"
expect 0 "a good configuration" check-config "$config"
silent err "a good configuration: nothing to say"
for word in "$config" "$dir/s" "$dir/state" naive "2 slots" "64,128" always; do
	says out "$word" "the summary says $word"
done
expect 0 "--json" check-config "$config" --json
json "$dir/out" "--json: the configuration in effect" \
	"d['socket'] == '$dir/s' and d['slots'] == 2 and d['max_queued'] == 20000 and d['kill_grace_s'] == 30 and
	 d['types']['t']['batches'] == [64, 128] and d['types']['t']['cpus'] == {'min': 1, 'max': 1, 'default': 1}"
cp "$dir/out" "$dir/effective.json"
expect 0 "what --json prints is a configuration" check-config "$dir/effective.json" --json
same "$dir/out" "$dir/effective.json" "what --json prints is the same configuration"
expect 0 "-o" check-config "$config" -o "$dir/written"
silent out "-o: nothing on stdout"
that "-o: the file is there" test -s "$dir/written"
expect 0 "-q" check-config "$config" -q
silent out "-q: nothing on stdout"

# ---- which one ----
expect 4 "no configuration anywhere" check-config
says err "POSTRIDER_CONFIG" "no configuration anywhere: says where one would be"
expect 4 "a file that is not there" check-config "$dir/nowhere"
mkdir -p "$dir/etc/postrider"
cp "$config" "$dir/etc/postrider/config.json"
expect 0 "the user's own" check-config
says out "$dir/etc/postrider/config.json" "the user's own: is named"
POSTRIDER_CONFIG=$dir/nowhere
export POSTRIDER_CONFIG
expect 4 "POSTRIDER_CONFIG wins over it" check-config
expect 0 "a FILE wins over both" check-config "$config"
unset POSTRIDER_CONFIG
if "$postrider" check-config - -q <"$config" 2>"$dir/err"; then
	ok "standard input"
else
	not_ok "standard input" "$(last_words)"
fi

# ---- what is wrong, and where ----
printf '{\n  "slots": 2,\n  "cores": x\n}\n' >"$config"
expect 6 "no JSON" check-config "$config"
says err "c.json:3:12:" "no JSON: line and column"
silent out "no JSON: nothing on stdout"
write '"solts": 3,'
expect 6 "an unknown key" check-config "$config"
says err "did you mean 'slots'" "an unknown key: the nearest one is named"
write '"types": {"digits": {"params": {"epochs": {"kind": "integer", "min": "1"}}}},'
expect 6 "a wrong value" check-config "$config"
says err "c.json: types.digits.params.epochs.min: " "a wrong value: the place is named"
write '"types": {"t": {"argv": ["sh", "{batch}", "{epohcs}"], "params": {"epochs": {"kind": "integer"}}}},'
expect 6 "an unknown placeholder" check-config "$config"
says err "did you mean {epochs}" "an unknown placeholder: the nearest one is named"
write '"policy": "postridr",'
expect 6 "an unknown policy" check-config "$config"
says err "'postrider'" "an unknown policy: the nearest one is named"

# ---- what is not there ----
write '"policy": "naive", "types": {"t": {"argv": ["/nowhere/train", "{batch}"], "batches": [64], "work_dir": "/no"}},'
expect 6 "things that are not there" check-config "$config"
says err "types.t.argv[0]: /nowhere/train" "things that are not there: the program is named"
says err "types.t.work_dir: /no" "things that are not there: all are named in one go"
says out "/nowhere/train" "things that are not there: the summary is shown"
write "$type"
expect 6 "a policy without its model" check-config "$config"
says err "model: " "a policy without its model: says so"
write "\"policy\": \"naive\", \"types\": {\"t\": {\"argv\": [\"sh\", \"{batch}\"], \"cpus\": {\"max\": 3}, \"batches\": [1]}},"
expect 0 "more cpus than slots is no error" check-config "$config"
says err "note: " "more cpus than slots: a note"
says err "cpus.max: 3 are more than the 2 slots" "more cpus than slots: says so"
expect 0 "more cpus than slots, -q" check-config "$config" -q
silent err "more cpus than slots, -q: no note"

# ---- the model ----
make_table "$dir/runs.csv"
if "$postrider" train "$dir/runs.csv" -o "$dir/hybrid.model" --model hybrid --set trees=20 -q 2>"$dir/err" &&
	"$postrider" train "$dir/runs.csv" -o "$dir/forest.model" --model forest --set trees=20 -q 2>"$dir/err"; then
	params='"network": {"kind": "word", "values": ["lenet5", "simplenet"], "required": true},
		"epochs": {"kind": "integer", "default": 10}, "samples": {"kind": "integer", "default": 60000}'
	argv='["sh", "{batch}", "{network}", "{epochs}", "{samples}"]'
	write "\"model\": \"$dir/hybrid.model\", \"types\": {\"t\": {\"argv\": $argv, \"params\": {$params}}},"
	expect 0 "a model that suits the policy" check-config "$config"
	silent err "a model that suits the policy: nothing to say"
	head -n 3 "$dir/runs.csv" >"$dir/few.csv"
	"$postrider" train "$dir/few.csv" -o "$dir/few.model" --model hybrid --set trees=20 -q 2>"$dir/err"
	write "\"model\": \"$dir/few.model\", \"types\": {\"t\": {\"argv\": $argv, \"params\": {$params}}},"
	expect 0 "a model of two runs" check-config "$config"
	that "a model of two runs promises" sh -c "! grep -q 'can be promised' '$dir/err'"
	write "\"confidence\": 0.99, \"model\": \"$dir/few.model\", \"types\": {\"t\": {\"argv\": $argv, \"params\": {$params}}},"
	expect 0 "a model of two runs at 99 %" check-config "$config"
	says err "3 independent residuals cannot carry a confidence of 0.99: 33 are needed; nothing can be promised" \
		"a model of two runs at 99 %: it has no bounds, and that is said"
	write "\"model\": \"$dir/forest.model\", \"types\": {\"t\": {\"argv\": $argv, \"params\": {$params}}},"
	expect 6 "a model that does not" check-config "$config"
	says err "hybrid" "a model that does not: the right one is named"
	card="\"policy\": \"card\", \"types\": {\"t\": {\"argv\": $argv, \"params\": {$params}}},"
	write "\"model\": \"$dir/hybrid.model\", $card"
	expect 6 "card and a hybrid on another queue" check-config "$config"
	says err "queue=paper" "card and a hybrid on another queue: the right one is named"
	run train "$dir/runs.csv" -o "$dir/card.model" --policy card --set trees=20 -q
	write "\"model\": \"$dir/card.model\", $card"
	expect 0 "card and the model trained for it" check-config "$config"
	write "\"model\": \"$dir/hybrid.model\", \"types\": {\"t\": {\"argv\": [\"sh\", \"{batch}\"]}},"
	expect 0 "a type without what the model knows" check-config "$config"
	says err "tells jobs apart by 'network'" "a type without what the model knows: noted"
	write "\"model\": \"$dir/hybrid.model\", \"types\": {\"t\": {\"argv\": [\"sh\", \"{batch}\", \"{network}\"],
		\"params\": {\"network\": {\"kind\": \"word\", \"values\": [\"lenet5\", \"vgg\"], \"required\": true}}}},"
	expect 0 "a word the model has never seen" check-config "$config"
	says err "never seen 'vgg'" "a word the model has never seen: noted"
	write "\"model\": \"$dir/hybrid.model\", \"types\": {\"t\": {\"argv\": [\"sh\", \"{batch}\", \"{epochs}\"],
		\"params\": {\"epochs\": {\"kind\": \"word\"}}}},"
	expect 6 "a word where the model has a number" check-config "$config"
	says err "params.epochs: a word here" "a word where the model has a number: says so"
else
	not_ok "there are models to check" "$(last_words)"
fi

# ---- the state folder ----
write "\"policy\": \"naive\", $type"
mkdir -p "$dir/state"
chmod 777 "$dir/state"
expect 6 "a state folder others may write to" check-config "$config"
says err "others may write" "a state folder others may write to: says so"

# ---- documents ----
write '"policy": "naive", "types": {"t": {"argv": ["sh", "{batch}"], "batches": [1], "params": {
	"a_word": {"kind": "word"}, "a_number": {"kind": "number"}}}},'
run check-config "$config" --json
keys=$(grep -o '"[a-z_]*":' "$dir/out" | tr -d '":' | sort -u | grep -vx 't\|a_word\|a_number')
missing=
for key in $keys; do
	grep -q "^| .*\`[a-zA-Z.]*${key}[.\`]" configs/README.md || missing="$missing README:$key"
	grep -q "$key" docs/man/postrider.json.5 || missing="$missing man:$key"
done
that "all keys are documented:$missing" test -z "$missing" -a "$(echo "$keys" | wc -l)" -gt 50

# ---- usage ----
expect 2 "two files" check-config a b

run check-config configs/postrider.json --json
json "$dir/out" "configs/postrider.json: the system's places" \
	"d['socket'] == '/run/postrider/postrider.sock' and d['state_dir'] == '/var/lib/postrider'"
run check-config configs/demo.json --json
json "$dir/out" "configs/demo.json: places in build/run" \
	"d['socket'].endswith('/build/run/postrider.sock') and 'digits' in d['types']"
finish
