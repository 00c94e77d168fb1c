#!/bin/sh
# The metrics: over HTTP and as a file, their names and format, documents, dashboard and alert rules that name them.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
# shellcheck disable=SC2034 # daemon_lib.sh reads it; port 0: any that is free
more_config="\"http\": {\"listen\": \"127.0.0.1:0\", \"hosts\": [\"postrider.example\"]}, \"metrics_file\": \"$dir/postrider.prom\","
# shellcheck disable=SC2034 # a job type with a model of its own
more_types="\"own\": {\"argv\": [\"/bin/true\", \"{batch}\"], \"model\": \"$dir/m.model\", \"batches\": [64, 128], \"params\": {
 \"network\": {\"kind\": \"word\", \"default\": \"simplenet\"}, \"epochs\": {\"kind\": \"integer\", \"default\": 4},
 \"samples\": {\"kind\": \"integer\", \"default\": 12000}}},"
. tests/cli/daemon_lib.sh

if ! command -v curl >/dev/null; then
	skipped "metrics over HTTP" "curl is not installed"
	finish
fi
port_of_daemon() { sed -n 's/.*HTTP on .*, port \([0-9]*\)$/\1/p' "$dir/daemon.log" | tail -n 1; }
base=http://127.0.0.1:$(port_of_daemon)

# get PATH [OPTION...]: the body into $dir/out, the status into $status
get() {
	path=$1
	shift
	status=$(curl -s -m 10 -o "$dir/out" -w '%{http_code}' "$@" "$base$path")
}
status_is() { # STATUS CLAIM
	if [ "$status" = "$1" ]; then ok "$2"; else not_ok "$2" "status $status, not $1: $(head -c 200 "$dir/out")"; fi
}
value() { awk -v name="$1" '$1 == name { print $2 }' "$dir/out"; } # of a sample, its labels included
value_is() { # SAMPLE VALUE CLAIM
	if [ "$(value "$1")" = "$2" ]; then ok "$3"; else not_ok "$3" "$1 is '$(value "$1")', not $2"; fi
}

submitted --slo 1h
first=$id
tried is_state "$first" done
submitted --slo 1ms
"$postrider" submit nap --slo 1h --set code=3 -q >/dev/null 2>&1
tried is_state 3 failed
"$postrider" submit gone -q >/dev/null 2>&1

get /metrics
status_is 200 "metrics are served on the address of the configuration"
cp "$dir/out" "$dir/metrics"
value_is 'postrider_submissions_total{verdict="promised"}' 2 "promises are counted when they are made"
value_is 'postrider_promises_total' 2 "and have a metric of their own"
value_is 'postrider_slo_outcomes_total{result="met"}' 1 "a promise that was kept is counted"
value_is 'postrider_slo_outcomes_total{result="missed"}' 1 "a job that failed has missed its promise"
value_is 'postrider_rejections_total{reason="slo_exceeded"}' 1 "a rejection is counted by its reason"
value_is 'postrider_rejections_total{reason="price"}' 0 "a rejection for its price has a reason, too"
value_is 'postrider_jobs_ended_total{state="failed"}' 1 "ends are counted by state"
value_is 'postrider_run_seconds_count' 1 "the run time of a job that is done is in the histogram"
value_is 'postrider_response_seconds_count' 1 "and so is its response time"
value_is 'postrider_wait_seconds_count' 2 "waits are of all jobs that started"
value_is 'postrider_request_errors_total{code="unknown_type"}' 1 "errors are counted by code"
value_is 'postrider_bounds_total{confidence="0.90",result="within"}' 1 "the bound of the run time held"
value_is 'postrider_type_bounds_total{type="nap",result="within"}' 1 "by job type as well"
value_is 'postrider_type_bounds_expected_total{type="nap"}' 0.9 "with what its confidence lets expect"
value_is 'postrider_model_version' 0 "the configuration's model has a version"
value_is 'postrider_model_version{type="own"}' 0 "and so has that of a job type with a model of its own"
value_is 'postrider_drift_alarm{type="own"}' 0 "and an alarm of its own"
that "the rows of both are told" [ "$(value 'postrider_model_rows{type="own"}')" -gt 0 ]
that "model_info names it" grep -q '^postrider_model_info{policy="postrider",model="[^"]*",type="own"} 1$' "$dir/out"
value_is 'postrider_jobs{state="done"}' 1 "jobs are counted by state"
"$postrider" stats --json >"$dir/stats.json"
json "$dir/stats.json" "stats has the same numbers" \
	"d['slo']['met'] == 1 and d['slo']['missed'] == 1 and d['coverage'][0]['inside'] == 1 and d['jobs']['done'] == 1"

if command -v promtool >/dev/null; then
	if promtool check metrics <"$dir/metrics" >"$dir/lint" 2>&1 && [ ! -s "$dir/lint" ]; then
		ok "promtool finds nothing wrong with names and format"
	else
		not_ok "promtool finds nothing wrong with names and format" "$(head -n 3 "$dir/lint" | tr '\n' '|')"
	fi
	that "the alert rules are valid" sh -c "promtool check rules configs/monitoring/alerts.yml >'$dir/lint' 2>&1"
	that "each rule fires where it should, and not before" \
		sh -c "promtool test rules configs/monitoring/alerts.test.yml >'$dir/lint' 2>&1"
else
	skipped "names, format and alert rules by promtool" "not installed; Debian: prometheus"
fi

# Names: what there is, what the document says, what dashboard and rules ask for
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$dir/metrics" | sort >"$dir/there"
sed -n 's/^| `\(postrider_[a-z_]*\)` .*/\1/p' docs/METRICS.md | sort >"$dir/documented"
same "$dir/there" "$dir/documented" "docs/METRICS.md lists every metric, and no other"
for asks in configs/monitoring/grafana-dashboard.json configs/monitoring/alerts.yml configs/monitoring/alerts.test.yml; do
	grep -oE 'postrider_[a-z_]+' "$asks" | sed -E 's/_(bucket|sum|count)$//' | sort -u >"$dir/asked"
	missing=$(comm -23 "$dir/asked" "$dir/there" | tr '\n' ' ')
	if [ -s "$dir/asked" ] && [ -z "$missing" ]; then
		ok "$asks names only metrics that exist"
	else
		not_ok "$asks names only metrics that exist" "not there: $missing"
	fi
done
json configs/monitoring/grafana-dashboard.json "the dashboard is JSON, and every panel has a query and a place" \
	"len(d['panels']) >= 12 and all(p['targets'] and all(t['expr'] for t in p['targets']) and p['gridPos']['x'] + p['gridPos']['w'] <= 24 for p in d['panels'])"

# Who may ask
get /metrics -H 'Host: evil.example'
status_is 421 "a name that is not the daemon's is refused: a page elsewhere cannot point its name here"
get /metrics -H "Host: localhost:$(port_of_daemon)"
status_is 200 "localhost is a name of it"
get /metrics -H 'Host: postrider.example'
status_is 200 "so is a name of the configuration"
get /metrics -H 'Origin: http://evil.example'
status_is 403 "a page of another site is refused"
get /metrics -H "Origin: $base"
status_is 200 "its own page is not"
get /metrics -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: no-cors'
status_is 403 "a request that a browser calls cross-site is refused"
get /metrics -X POST
status_is 405 "metrics are read, not written"
get /nothing
status_is 404 "there is nothing else at other places"
get "/metrics/$(head -c 20000 /dev/zero | tr '\0' x)"
if [ "$status" = 400 ] || [ "$status" = 413 ] || [ "$status" = 000 ]; then ok "a request without end is cut off"; else not_ok "a request without end is cut off" "status $status"; fi

# The file
that "the file is there, and others may read it" sh -c "[ \"\$(stat -c %a '$dir/postrider.prom')\" = 644 ]"
fresh() { grep -q '^postrider_promises_total 2$' "$dir/postrider.prom"; }
that "and follows" tried fresh
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$dir/postrider.prom" | sort >"$dir/in_file"
same "$dir/there" "$dir/in_file" "with the same metrics"

# A restart
daemon_stop
that "the file goes with the daemon" [ ! -e "$dir/postrider.prom" ]
daemon_start
base=http://127.0.0.1:$(port_of_daemon)
get /metrics
value_is 'postrider_slo_outcomes_total{result="met"}' 0 "counters begin at 0 after a restart: Prometheus would count old jobs twice"
value_is 'postrider_interval_coverage_ratio{confidence="0.90"}' 1 "the coverage of earlier jobs is still known"

# A Unix socket, behind which there is a proxy
daemon_stop
sed -i "s|127.0.0.1:0|$dir/http.sock|" "$dir/config.json"
daemon_start
status=$(curl -s -m 10 -o "$dir/out" -w '%{http_code}' --unix-socket "$dir/http.sock" http://localhost/metrics)
status_is 401 "over a Unix socket a token is needed"
daemon_stop
that "the socket goes with the daemon" [ ! -e "$dir/http.sock" ]

# What a configuration may not say
for bad in '"listen": "example.com:80"' '"listen": "127.0.0.1"' '"listen": "127.0.0.1:99999"' '"listen": "relative/path"' \
	'"hosts": ["a b"]' '"port": 80' '"max_connections": 0'; do
	echo "{\"http\": {$bad}}" >"$dir/bad.json"
	run check-config "$dir/bad.json"
	code_is 6 "check-config refuses http with $bad"
done
says err 'max_connections' "and says which key"
finish
