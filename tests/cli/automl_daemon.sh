#!/bin/sh
# The winner of a campaign as the model of a real daemon: check-config takes it, a reload brings it in, jobs are promised by it.
. tests/cli/lib.sh
. tests/cli/daemon_lib.sh

cat >"$dir/c.ini" <<END
[General]
y = time_s
techniques = ['LRRidge', 'RandomForest', 'Hybrid']
hp_selection = KFold
validation = HoldOut
folds = 4
hold_out_ratio = 0.2
[DataPreparation]
input_path = $PWD/configs/profiles/two-cores/runs.csv
use_columns = ['network', 'cpus', 'njobs', 'batch', 'epochs', 'samples']
inverse = ['batch']
product_max_degree = 2
[RandomForest]
n_estimators = [50]
max_depth = [8]
[Hybrid]
n_estimators = [50]
[Postrider]
learning_curve = False
END
expect 0 "a campaign on the committed profile" automl "$dir/c.ini" -o "$dir/r" -q
for model in best LRRidge RandomForest; do
	sed "s|m.model|r/$model.model|" "$dir/config.json" >"$dir/new.json"
	expect 0 "check-config takes $model.model" check-config "$dir/new.json"
done
sed "s|m.model|r/best.model|" "$dir/config.json" >"$dir/new.json" && mv "$dir/new.json" "$dir/config.json"
expect 0 "a reload brings the winner in" reload
run stats --json
json "$dir/out" "the daemon says so" "d['model'].startswith('automl-')"

expect 0 "a job is promised by it" submit nap --slo 5m --set network=lenet5 --json
json "$dir/out" "by bounds that the campaign's residuals give" \
	"d['verdict'] == 'promised' and d['decision']['model'].startswith('automl-') and
	 all(c['upper_s'] > c['time_s'] > 0 for c in d['decision']['candidates'])"
tried is_state 1 "done"
that "the job runs to its end" is_state 1 "done"
expect 3 "what cannot be in time is rejected" submit nap --slo 0.001
says out "the shortest limit that could be promised" "with what could be promised"
daemon_stop
daemon_start
run stats --json
json "$dir/out" "after a restart it is there again" "d['model'].startswith('automl-')"
expect 0 "and decides" submit nap --slo 5m -q
# A policy that is defined by its own model does not take another.
sed 's|"outside_load"|"policy": "courier", "outside_load"|' "$dir/config.json" >"$dir/courier.json"
expect 6 "the paper's policy keeps to its own model" check-config "$dir/courier.json"
says err "policy courier wants the model" "and says which"
finish
