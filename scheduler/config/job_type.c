/* Reading, checking and writing a job type. Its parameters are in job_params.c, its command in job_argv.c. */
#include "scheduler/config/job_type.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "common/places.h"
#include "scheduler/config/type_parts.h"

#define MAX_ABOUT 512
#define MAX_PATH_IN_RESULT 128
#define MAX_ENV 64
#define MAX_ENV_VALUE 4096
#define MAX_MB 1e9
#define MAX_BATCH 1e9
#define MAX_TIME_S 1e8

static const char *const rule_name[] = { "none", "linear", "sqrt", NULL }; /* enum lr_rule */

const char *lr_rule_name(enum lr_rule r)
{
	return rule_name[r];
}

double job_type_lr(const struct job_type *t, double batch)
{
	switch (t->lr_rule) {
	case LR_NONE: return t->lr_base;
	case LR_LINEAR: return t->lr_base * (batch / t->lr_base_batch);
	case LR_SQRT: return t->lr_base * sqrt(batch / t->lr_base_batch);
	}
	return NAN;
}

void job_type_release(struct job_type *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_params; i++)
		param_release(&t->param[i]);
	for (size_t i = 0; i < t->n_argv; i++)
		free(t->argv[i]);
	for (size_t i = 0; i < t->n_env; i++)
		free(t->env[i]);
	free(t->param);
	free(t->env);
	free(t->name);
	free(t->about);
	free(t->accuracy_path);
	free(t->epoch_path);
	free(t->epochs_param);
	free(t->work_dir);
	*t = (struct job_type){ 0 };
}

/* ---- reading ---- */

static void read_cpus(struct fields *f, struct job_type *t)
{
	static const char *const known[] = { "min", "max", "default", NULL };
	uint64_t min = 1, max = 0, otherwise = 0;
	struct fields c;

	if (fields_open_member(&c, f, "cpus", known)) {
		field_whole(&c, "min", 1, JOB_TYPE_MAX_CPUS, &min);
		field_whole(&c, "max", 1, JOB_TYPE_MAX_CPUS, &max);
		field_whole(&c, "default", 1, JOB_TYPE_MAX_CPUS, &otherwise);
		if (!otherwise)
			otherwise = min;
		if (!max)
			max = otherwise > min ? otherwise : min;
		if (max < min)
			fields_fail(&c, ERR_FORMAT, "max", "is below min");
		if (otherwise < min || otherwise > max)
			fields_fail(&c, ERR_FORMAT, "default", "is not from min to max");
		fields_close(&c, f);
	}
	t->cpus_min = (uint32_t)min;
	t->cpus_max = (uint32_t)(max ? max : min);
	t->cpus_default = (uint32_t)(otherwise ? otherwise : min);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void read_batches(struct fields *f, struct job_type *t)
{
	const struct json *list = fields_list(f, "batches", 1, JOB_TYPE_MAX_BATCHES);
	char key[32], shown[32];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		double v = json_number(e, NAN);

		snprintf(key, sizeof key, "batches[%zu]", t->n_batches);
		if (!(v >= 1.0 && v <= MAX_BATCH) || v != floor(v))
			fields_fail(f, ERR_FORMAT, key, "must be a whole number from 1 to 1000000000");
		else
			t->batch[t->n_batches++] = v;
	}
	qsort(t->batch, t->n_batches, sizeof t->batch[0], compare);
	for (size_t i = 1; i < t->n_batches; i++) {
		if (t->batch[i] == t->batch[i - 1])
			fields_fail(f, ERR_FORMAT, "batches", "%s is there twice",
				    text_shortest(t->batch[i], shown));
	}
}

static void read_lr(struct fields *f, struct job_type *t)
{
	static const char *const known[] = { "rule", "base", "base_batch", NULL };
	int rule = LR_NONE;
	struct fields l;

	t->lr_base = t->lr_base_batch = NAN;
	if (!fields_open_member(&l, f, "lr", known))
		return;
	field_choice(&l, "rule", rule_name, &rule);
	field_number(&l, "base", 1e-12, 1e6, &t->lr_base);
	field_number(&l, "base_batch", 1.0, MAX_BATCH, &t->lr_base_batch);
	t->lr_rule = (enum lr_rule)rule;
	if (rule != LR_NONE && isnan(t->lr_base))
		fields_fail(&l, ERR_FORMAT, "base",
			    "is needed by the rule %s: the learning rate at base_batch", rule_name[rule]);
	if (rule != LR_NONE && isnan(t->lr_base_batch))
		fields_fail(&l, ERR_FORMAT, "base_batch",
			    "is needed by the rule %s: the batch at which base is the rate", rule_name[rule]);
	fields_close(&l, f);
}

static void read_limits(struct fields *f, struct job_type *t)
{
	static const char *const known[] = { "file_mb", "address_mb", "open_files", "nice", NULL };
	uint64_t open_files = 0;
	double nice = 0;
	struct fields l;

	if (!fields_open_member(&l, f, "limits", known))
		return;
	field_whole(&l, "file_mb", 0, (uint64_t)MAX_MB, &t->max_file_mb);
	field_whole(&l, "address_mb", 0, (uint64_t)MAX_MB, &t->max_address_mb);
	field_whole(&l, "open_files", 0, 1048576, &open_files);
	field_number(&l, "nice", -20, 19, &nice);
	if (nice != floor(nice))
		fields_fail(&l, ERR_FORMAT, "nice", "must be a whole number from -20 to 19");
	t->max_open_files = (uint32_t)open_files;
	t->nice = (int)nice;
	fields_close(&l, f);
}

static void read_result(struct fields *f, struct job_type *t)
{
	static const char *const known[] = { "accuracy", "epoch", NULL };
	struct fields r;

	t->accuracy_path = mem_strdup("accuracy");
	t->epoch_path = mem_strdup("epoch");
	if (!t->accuracy_path || !t->epoch_path)
		fields_nomem(f, "result");
	if (!fields_open_member(&r, f, "result", known))
		return;
	field_text(&r, "accuracy", MAX_PATH_IN_RESULT, &t->accuracy_path);
	field_text(&r, "epoch", MAX_PATH_IN_RESULT, &t->epoch_path);
	fields_close(&r, f);
}

static bool env_name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || (!isalpha((unsigned char)*s) && *s != '_'))
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	}
	return true;
}

static void env_add(struct fields *f, struct job_type *t, const char *name, const char *value)
{
	size_t size;

	if (!env_name_is_good(name)) {
		fields_fail(f, ERR_FORMAT, name,
			    "is no name of a variable: letters, digits and _, no digit first, at most %d",
			    JOB_TYPE_MAX_NAME);
		return;
	}
	if (!strncmp(name, "POSTRIDER_", strlen("POSTRIDER_"))) {
		fields_fail(f, ERR_FORMAT, name, "is set by Postrider");
		return;
	}
	if (!value || strlen(value) > MAX_ENV_VALUE) {
		fields_fail(f, ERR_FORMAT, name, "must be a string of at most %d bytes", MAX_ENV_VALUE);
		return;
	}
	size = strlen(name) + strlen(value) + 2;
	t->env[t->n_env] = mem_alloc(size);
	if (!t->env[t->n_env]) {
		fields_nomem(f, name);
		return;
	}
	snprintf(t->env[t->n_env++], size, "%s=%s", name, value);
}

static void read_env(struct fields *f, struct job_type *t)
{
	size_t n = json_size(fields_get(f, "env"));
	struct fields e;

	if (!fields_open_member(&e, f, "env", NULL))
		return;
	if (n > MAX_ENV)
		fields_fail(f, ERR_FORMAT, "env", "has %zu variables; at most %d are allowed", n, MAX_ENV);
	t->env = f->rc ? NULL : mem_calloc(n, sizeof *t->env);
	if (!t->env) {
		fields_nomem(f, "env");
		return;
	}
	for (const struct json *m = json_first(e.object); m && !e.rc; m = json_next(m))
		env_add(&e, t, json_key(m), json_string(m, NULL));
	fields_close(&e, f);
}

static bool name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || !*s || *s == '_' || *s == '.' || *s == '-')
		return false;
	for (; *s; s++) {
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && !strchr("_.-", *s))
			return false;
	}
	return true;
}

int job_type_from_json(const char *where, const char *name, const struct json *v, struct job_type *out,
		       struct err *err)
{
	static const char *const known[] = {
		"about",    "argv",       "params",         "cpus",
		"batches",  "lr",         "memory_mb",      "limits",
		"result",   "env",        "epochs_param",   "memory_mb_per_record",
		"work_dir", "max_time_s", "epochs_choices", "early_stop",
		NULL
	};
	struct job_type t = { .memory_mb = NAN, .memory_mb_per_record = NAN };
	struct fields f;

	if (!name_is_good(name))
		return err_fail(err, ERR_FORMAT,
				"%s: is no name of a type: small letters, digits and _ . -, a letter or "
				"digit first, at most %d",
				where, JOB_TYPE_MAX_NAME);
	fields_open(&f, where, ".", v, known, err);
	t.name = f.rc ? NULL : mem_strdup(name);
	if (!t.name)
		fields_nomem(&f, "name");
	field_text(&f, "about", MAX_ABOUT, &t.about);
	params_read(&f, &t);
	argv_read(&f, &t);
	read_cpus(&f, &t);
	read_batches(&f, &t);
	read_lr(&f, &t);
	field_number(&f, "memory_mb", 0.0, MAX_MB, &t.memory_mb);
	field_number(&f, "memory_mb_per_record", 0.0, MAX_MB, &t.memory_mb_per_record);
	field_number(&f, "max_time_s", 0.0, MAX_TIME_S, &t.max_time_s);
	read_limits(&f, &t);
	read_result(&f, &t);
	epochs_read(&f, &t);
	field_path(&f, "work_dir", &t.work_dir);
	read_env(&f, &t);
	if (f.rc) {
		job_type_release(&t);
		return f.rc;
	}
	*out = t;
	return 0;
}

/* ---- writing ---- */

static void put_command(const struct job_type *t, struct json_writer *w)
{
	json_put_key(w, "argv");
	json_open(w, '[');
	for (size_t i = 0; i < t->n_argv; i++)
		json_put_string(w, t->argv[i]);
	json_close(w, ']');
	json_put_key(w, "params");
	json_open(w, '{');
	for (size_t i = 0; i < t->n_params; i++) {
		json_put_key(w, t->param[i].name);
		param_to_json(&t->param[i], w);
	}
	json_close(w, '}');
}

/* null where there are none: the default. */
static void put_numbers(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_put_key(w, key);
	if (!n) {
		json_put_null(w);
		return;
	}
	json_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_number(w, v[i]);
	json_close(w, ']');
}

static void put_choice(const struct job_type *t, struct json_writer *w)
{
	json_put_key(w, "cpus");
	json_open(w, '{');
	json_kv_int(w, "min", t->cpus_min);
	json_kv_int(w, "max", t->cpus_max);
	json_kv_int(w, "default", t->cpus_default);
	json_close(w, '}');
	put_numbers(w, "batches", t->batch, t->n_batches);
	json_put_key(w, "lr");
	json_open(w, '{');
	json_kv_string(w, "rule", lr_rule_name(t->lr_rule));
	json_kv_number(w, "base", t->lr_base);
	json_kv_number(w, "base_batch", t->lr_base_batch);
	json_close(w, '}');
}

static void put_limits(const struct job_type *t, struct json_writer *w)
{
	json_kv_number(w, "memory_mb", t->memory_mb);
	json_kv_number(w, "memory_mb_per_record", t->memory_mb_per_record);
	json_kv_number(w, "max_time_s", t->max_time_s);
	json_put_key(w, "limits");
	json_open(w, '{');
	json_kv_int(w, "file_mb", (long long)t->max_file_mb);
	json_kv_int(w, "address_mb", (long long)t->max_address_mb);
	json_kv_int(w, "open_files", t->max_open_files);
	json_kv_int(w, "nice", t->nice);
	json_close(w, '}');
}

void job_type_to_json(const struct job_type *t, struct json_writer *w)
{
	char name[JOB_TYPE_MAX_NAME + 1];

	json_open(w, '{');
	json_kv_string(w, "about", t->about);
	put_command(t, w);
	put_choice(t, w);
	put_limits(t, w);
	json_put_key(w, "result");
	json_open(w, '{');
	json_kv_string(w, "accuracy", t->accuracy_path);
	json_kv_string(w, "epoch", t->epoch_path);
	json_close(w, '}');
	json_kv_string(w, "epochs_param", t->epochs_param);
	put_numbers(w, "epochs_choices", t->epochs, t->n_epochs);
	json_kv_bool(w, "early_stop", t->early_stop);
	json_kv_string(w, "work_dir", t->work_dir);
	json_put_key(w, "env");
	json_open(w, '{');
	for (size_t i = 0; i < t->n_env; i++) {
		const char *value = strchr(t->env[i], '=');

		snprintf(name, sizeof name, "%.*s", (int)(value - t->env[i]), t->env[i]);
		json_kv_string(w, name, value + 1);
	}
	json_close(w, '}');
	json_close(w, '}');
}
