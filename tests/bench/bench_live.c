/* Benches that look at a daemon from outside, as a monitoring system, a Python program and a browser do. The
 * scripts in tests/bench/live/ start it, measure and print one JSON object; each has an absolute bar. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

static int run(struct bench_env *env, const char *name, const char *unit, double bar,
	       struct bench_result *out, struct err *err)
{
	const char *other = getenv("BENCH_PYTHON"), *slash = strrchr(env->self, '/');
	char script[128], folder[512];
	const char *const argv[] = { other ? other : "/usr/bin/python3", script, folder, NULL };
	struct json *v = NULL;
	int rc;

	snprintf(script, sizeof script, "tests/bench/live/%s.py", name);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - env->self) : 1,
		 slash ? env->self : ".");
	out->kind = BAR_AT_MOST;
	out->unit = unit;
	out->bar = bar;
	out->holds = HOLDS_UNKNOWN;
	out->ours = NAN;
	rc = bench_run_json(argv, &v, err);
	if (rc == -ERR_NOTFOUND) {
		bench_what(out, "%s", err->text);
		*err = (struct err){ 0 };
		return 0;
	}
	if (rc)
		return rc;
	out->ours = json_number(json_get(v, "ours"), NAN);
	bench_what(out, "%s", json_string(json_get(v, "what"), ""));
	out->holds = out->ours <= bar && json_bool(json_get(v, "also"), false) ? HOLDS_YES : HOLDS_NO;
	json_free(v);
	return 0;
}

int bench_metrics_scrape(struct bench_env *env, struct bench_result *out, struct err *err)
{
	return run(env, "metrics_scrape", "ms", 5.0, out, err);
}
