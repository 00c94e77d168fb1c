/* The configuration of learning: where the daemon starts from, and when it trains anew. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/config/config_parts.h"

#define MAX_TEST_JOBS 100000 /* PAIRED_MAX of core/paired.h */
#define MAX_VERSIONS 1000

void learning_default(struct config_learning *l)
{
	*l = (struct config_learning){
		.retrain_after = 200,
		.min_observations = 30,
		.test_jobs = 50,
		.significance = 0.05,
		.keep_versions = 10,
		.hysteresis = 0.05,
		.adapt = true,
		.promise_after = 9,
	};
}

void learning_release(struct config_learning *l)
{
	free(l->table);
	free(l->schema);
	free(l->curves);
}

void learning_read(struct fields *f, struct config_learning *l)
{
	static const char *const known[] = { "table",     "schema",       "curves",        "retrain_after",
					     "test_jobs", "significance", "keep_versions", "min_observations",
					     "explore",   "hysteresis",   "adapt",         "promise_after",
					     NULL };
	struct fields m;

	if (!fields_open_member(&m, f, "learning", known))
		return;
	field_path(&m, "table", &l->table);
	field_path(&m, "schema", &l->schema);
	field_path(&m, "curves", &l->curves);
	field_size(&m, "retrain_after", 0, CONFIG_MAX_COUNT, &l->retrain_after);
	field_size(&m, "min_observations", 2, CONFIG_MAX_COUNT, &l->min_observations);
	field_size(&m, "test_jobs", 5, MAX_TEST_JOBS, &l->test_jobs);
	field_number(&m, "significance", 1e-6, 0.5, &l->significance);
	field_size(&m, "keep_versions", 1, MAX_VERSIONS, &l->keep_versions);
	field_number(&m, "explore", 0.0, 1.0, &l->explore);
	field_number(&m, "hysteresis", 0.0, 10.0, &l->hysteresis);
	field_bool(&m, "adapt", &l->adapt);
	field_size(&m, "promise_after", 0, CONFIG_MAX_COUNT, &l->promise_after);
	if (!m.rc && l->curves && !l->table)
		fields_fail(&m, ERR_FORMAT, "curves", "belong to a table, and none is named");
	/* n jobs on which the new model is always better have a p value of 1 / 2^n. */
	if (!m.rc && exp2(-(double)l->test_jobs) >= l->significance)
		fields_fail(&m, ERR_FORMAT, "test_jobs",
			    "%zu jobs can not show a significance of %g: take %.0f or more", l->test_jobs,
			    l->significance, floor(-log2(l->significance)) + 1.0);
	fields_close(&m, f);
}

void learning_write(const struct config_learning *l, struct json_writer *w)
{
	json_put_key(w, "learning");
	json_open(w, '{');
	json_kv_string(w, "table", l->table);
	json_kv_string(w, "schema", l->schema);
	json_kv_string(w, "curves", l->curves);
	json_kv_int(w, "retrain_after", (long long)l->retrain_after);
	json_kv_int(w, "min_observations", (long long)l->min_observations);
	json_kv_int(w, "test_jobs", (long long)l->test_jobs);
	json_kv_number(w, "significance", l->significance);
	json_kv_int(w, "keep_versions", (long long)l->keep_versions);
	json_kv_number(w, "explore", l->explore);
	json_kv_number(w, "hysteresis", l->hysteresis);
	json_kv_bool(w, "adapt", l->adapt);
	json_kv_int(w, "promise_after", (long long)l->promise_after);
	json_close(w, '}');
}
