#!/bin/sh
# make-fixture.sh DIR [REPLICATIONS [JOBS]]: a folder as `postrider compare -o DIR` leaves it, made up, for the tests of the report.
# The numbers obey a small model (times, bounds, loads), so that figures look like real ones; the same arguments give the
# same bytes with any awk: chance comes from a generator of its own.
set -eu
dir=$1 reps=${2:-3} jobs=${3:-50}
LC_ALL=C
export LC_ALL
mkdir -p "$dir"
cat >"$dir/timing.json" <<'END'
{
  "machine": {"system": "Linux 6.1", "processor": "a processor of 2 GHz", "cores": 2},
  "created": "2026-01-02T03:04:05Z",
  "decision_s": {
    "courier": {"mean": 0.000041, "p99": 0.00012},
    "postrider": {"mean": 0.0000632, "p99": 0.00021},
    "naive": {"mean": 0.0000011, "p99": 0.000004},
    "boost": {"mean": 0.000037, "p99": 0.0001},
    "fixed:128": {"mean": 9e-7, "p99": 0.000003},
    "oracle": {"mean": 0.00089, "p99": 0.0041}
  }
}
END
awk -v dir="$dir" -v reps="$reps" -v jobs="$jobs" '
function uniform() { # Park and Miller, exact in doubles
	state = (state * 16807) % 2147483647
	return state / 2147483647
}
function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
function num(v) { return sprintf("%.10g", v) }
function seconds(network, cpus, processes, batch) {
	return 48000 / batch * (0.012 + (network == "lenet5" ? 4e-5 : 2.4e-5) * batch / cpus + 0.0009 * processes)
}
function trained(network, batch) { return 0.975 - (network == "lenet5" ? 1.1e-4 : 1.5e-4) * batch }
function field(key, value) { return ", \"" key "\": " value }
function spread(key, metric, p,   r, m, v, half) { # mean and 95 % interval over replications
	m = 0; v = 0
	for (r = 1; r <= reps; r++) m += got[metric, p, r] / reps
	for (r = 1; r <= reps; r++) v += (got[metric, p, r] - m) ^ 2 / (reps - 1)
	half = 4.3027 * sqrt(v / reps)
	return field(key, num(m)) field(key "_ci", "[" num(m - half) ", " num(m + half) "]")
}
function against(metric, p,   r, m, v, half, t) {
	m = 0; v = 0
	for (r = 1; r <= reps; r++) m += (got[metric, p, r] - got[metric, 1, r]) / reps
	for (r = 1; r <= reps; r++) v += (got[metric, p, r] - got[metric, 1, r] - m) ^ 2 / (reps - 1)
	half = 4.3027 * sqrt(v / reps)
	t = v > 0 ? m * m / (v / reps) : (m ? 1e9 : 0)
	# two-sided p of t with 2 degrees of freedom
	return "\"" metric "\": {\"difference\": " num(m) ", \"low\": " num(m - half) ", \"high\": " num(m + half) ", \"p\": " num(1 - sqrt(t / (t + 2))) "}"
}
BEGIN {
	state = 20260102
	n = split("courier postrider naive boost fixed:128 oracle", name, " ")
	split("the forests of the paper|hybrid model, bounds, look-ahead|largest batch that is free|boosting without the load|always 128|knows what will happen", title, "|")
	split("0.14 0.04 0.5 0.22 0.3 0", noise, " ")
	split("1.02 1 1 0.9 1 1", bias, " ")
	file = dir "/training.csv"
	print "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication" >file
	for (r = 1; r <= 2; r++) for (k = 0; k < 2; k++) for (c = 1; c <= 4; c *= 2) for (j = 1; j <= 5; j += 2) for (b = 64; b <= 512; b *= 2) {
		net = k ? "simplenet" : "lenet5"
		printf "%s,%d,%d,%d,4,12000,%.4f,%.4f,%d\n", net, c, j, b, seconds(net, c, c * j, b) * exp(0.03 * normal()), trained(net, b) + 0.002 * normal(), r >file
	}
	file = dir "/jobs.csv"
	print "policy,replication,job,arrival_s,tenant,type,cpus,network,samples,slo_s,confidence,promised,outcome,start_s,end_s,wait_s,response_s,run_s,batch,epochs,promised_s,promised_upper_s,predicted_s,upper_s,predicted_accuracy,accuracy,processes,njobs" >file
	for (p = 1; p <= n; p++) for (r = 1; r <= reps; r++) {
		state = 1000 + r # the same luck for every policy
		at = 0
		met = taken = promised = rejected = failed = kept = zero = right = 0
		response = wait = within = bounded = error = squared = 0
		for (i = 1; i <= jobs; i++) {
			at += -log(uniform()) * 4
			net = uniform() < 0.5 ? "lenet5" : "simplenet"
			cpus = 2 ^ int(3 * uniform())
			slo = 6 + 9 * uniform() + 3 * normal(); if (slo < 2) slo = 2
			load = 4 + 9 * uniform() + 3 * sin(i / 6); luck = exp(0.07 * normal()) * (i % 17 == 5 ? 1.4 : 1); guess = normal(); hit = uniform()
			queue = uniform() < 0.3 ? 4 * uniform() : 0
			tenant = uniform() < 0.6 ? "vision" : "speech"
			batch = p == 5 ? 128 : 0; feasible = 0
			for (b = 64; b <= 512 && !batch; b *= 2) {
				expected = seconds(net, cpus, p == 4 ? 6 : load, b) * bias[p] * exp(noise[p] * 0.6 * guess)
				if (queue + expected * (p == 2 ? 1.1 : 1) <= slo) { batch = b; feasible = 1 }
			}
			if (p == 3) batch = 512
			if (p == 5) feasible = 1
			took = seconds(net, cpus, load, batch ? batch : 512) * luck
			if (p == 6) { batch = 0; for (b = 64; b <= 512 && !batch; b *= 2) if (queue + seconds(net, cpus, load, b) * luck <= slo) { batch = b; feasible = 1; took = seconds(net, cpus, load, b) * luck } }
			predicted = p == 6 ? took : seconds(net, cpus, p == 4 ? 6 : load, batch ? batch : 512) * bias[p] * exp(noise[p] * 0.6 * guess)
			upper = p == 2 ? predicted * 1.1 : (p == 1 || p == 4) ? predicted * 1.15 : 0
			if (!batch) {
				rejected++
				printf "%s,%d,%d,%.6f,%s,,%d,%s,12000,%.4f,0.9,0,rejected,,,,,,,,,,,,,,,\n", name[p], r, i, at, tenant, cpus, net, slo >file
				continue
			}
			taken++
			state_name = hit < 0.01 ? "failed" : queue + took <= slo ? "met" : "missed"
			says = p != 3 && p != 5
			promised += says
			acc = trained(net, batch) + 0.002 * normal()
			if (state_name == "met") { met++; zero += acc; right += acc; kept += says }
			if (state_name == "failed") { failed++; took *= 0.5 }
			response += queue + took; wait += queue
			if (p != 3 && p != 5 && state_name != "failed") { bounded++; within += upper ? took <= upper : 0; error += sqrt((took - predicted) ^ 2) / took; squared += (took - predicted) ^ 2 }
			printf "%s,%d,%d,%.6f,%s,,%d,%s,12000,%.4f,0.9,%d,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%d,4,%s,%s,%s,%s,%s,%s,%.4f,%.4f\n", \
				name[p], r, i, at, tenant, cpus, net, slo, says, state_name, at + queue, at + queue + took, queue, queue + took, took, batch, \
				says ? sprintf("%.6f", queue + predicted) : "", upper ? sprintf("%.6f", queue + upper) : "", says ? sprintf("%.6f", predicted) : "", \
				upper ? sprintf("%.6f", upper) : "", says ? sprintf("%.4f", trained(net, batch)) : "", state_name == "failed" ? "" : sprintf("%.4f", acc), load, load / 2 >file
		}
		got["jobs", p, r] = jobs; got["promised", p, r] = promised; got["met", p, r] = met; got["rejected", p, r] = rejected; got["failed", p, r] = failed
		got["attainment", p, r] = promised ? kept / promised : met / taken
		got["attainment_all", p, r] = met / jobs; got["attainment_admitted", p, r] = met / taken
		got["accuracy_met", p, r] = right / met; got["accuracy", p, r] = right / met - 0.002; got["accuracy_zero", p, r] = zero / jobs
		got["response_mean_s", p, r] = response / taken; got["response_p95_s", p, r] = 1.9 * response / taken; got["response_p99_s", p, r] = 2.4 * response / taken
		got["wait_mean_s", p, r] = wait / taken; got["utilisation", p, r] = 0.6 + 0.01 * p; got["fairness", p, r] = 0.99 - 0.002 * p * r
		got["coverage", p, r] = bounded ? within / bounded : 0; got["mape", p, r] = bounded ? error / bounded : 0; got["mse", p, r] = bounded ? squared / bounded : 0
		got["accuracy_mae", p, r] = 0.0016 + 0.0001 * p
		tracked[p] += bounded; covered[p] += within
	}
	for (p = 1; p <= n; p++) for (r = 1; r <= reps; r++) {
		got["attainment_oracle", p, r] = got["met", p, r] / got["met", 6, r]
		got["regret", p, r] = got["accuracy_zero", 6, r] - got["accuracy_zero", p, r]
	}
	k = split("jobs promised met rejected failed attainment attainment_all attainment_admitted attainment_oracle accuracy accuracy_met accuracy_zero regret response_mean_s response_p95_s response_p99_s wait_mean_s utilisation fairness coverage mse mape accuracy_mae", metric, " ")
	file = dir "/compare.json"
	printf "{\n\"kind\": \"compare\", \"program\": \"postrider 0.1.0\", \"command\": \"postrider compare gen:poisson,jobs=%d --policies courier,postrider,naive,boost,fixed:128,oracle --world measured:runs.csv --cluster cores=16 --replications %d --seed 42\",\n", jobs, reps >file
	printf "\"seed\": 42, \"confidence\": 0.9, \"level\": 0.95, \"replications\": %d, \"adapt\": true, \"baseline\": \"courier\",\n", reps >file
	printf "\"trace\": {\"name\": \"gen:poisson,jobs=%d\", \"about\": \"%d jobs over 8 min, 2 tenants, generated\", \"jobs\": %d, \"fingerprint\": \"00c0ffee00c0ffee\"},\n", jobs, jobs, jobs >file
	print "\"world\": {\"name\": \"measured\", \"table\": \"runs.csv\", \"splits\": [\"replication 1 of 3 happens, 2 and 3 are learnt from\", \"replication 2 of 3 happens, 1 and 3 are learnt from\", \"replication 3 of 3 happens, 1 and 2 are learnt from\"]},\n\"cluster\": {\"cores\": 16, \"slots\": 32, \"nodes\": 1, \"memory_mb\": null}, \"disturbances\": {\"noise\": 0.05},\n\"policies\": [" >file
	for (p = 1; p <= n; p++) {
		printf "{\"name\": \"%s\", \"title\": \"%s\"", name[p], title[p] >file
		for (m = 1; m <= k; m++) {
			silent = (metric[m] == "coverage" || metric[m] == "mse" || metric[m] == "mape") && (p == 3 || p == 5 || p == 6)
			printf "%s", silent ? field(metric[m], "null") field(metric[m] "_ci", "[null, null]") : spread(metric[m], metric[m], p) >file
		}
		if (p > 1) {
			printf ",\n \"versus\": {" >file
			for (m = 1; m <= k; m++) {
				silent = (metric[m] == "coverage" || metric[m] == "mse" || metric[m] == "mape") && (p == 3 || p == 5 || p == 6)
				printf "%s%s", (m == 1 ? "" : ", "), silent ? "\"" metric[m] "\": {\"difference\": null, \"low\": null, \"high\": null, \"p\": null}" : against(metric[m], p) >file
			}
			printf "}" >file
		}
		printf ",\n \"calibration\": [%s]", p == 1 || p == 2 || p == 4 ? "{\"confidence\": 0.9, \"runs\": " tracked[p] ", \"within\": " covered[p] "}" : "" >file
		printf ", \"importances\": {%s}}%s\n", p == 1 ? "\"batch\": 0.61, \"cpus\": 0.17, \"njobs\": 0.15, \"network\": 0.07" : p == 2 ? "\"batch\": 0.42, \"processes\": 0.31, \"cpus\": 0.18, \"network\": 0.06, \"njobs\": 0.03" : p == 4 ? "\"batch\": 0.81, \"cpus\": 0.14, \"network\": 0.05" : "", (p < n ? "," : "") >file
	}
	print "]\n}" >file
}'
