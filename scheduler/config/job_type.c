/* A job type: the table of its keys, and its learning rates. Its parameters are in job_params.c, its epochs
 * in job_epochs.c, its command in job_argv.c. */
#include "scheduler/config/job_type.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"

#define MAX_ABOUT 512
#define MAX_ENV 64
#define MAX_ENV_VALUE 4096
#define MAX_MB 1e9
#define MAX_BATCH 1e9
#define MAX_TIME_S 1e8

const char *const probe_name[] = { "default", "off", "auto", NULL }; /* enum config_probe */
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

/* ---- keys that are more than a number or a text ---- */

static void check_cpus(struct fields *f, void *object)
{
	struct job_type *t = object;

	if (!t->cpus_default)
		t->cpus_default = t->cpus_min;
	if (!t->cpus_max)
		t->cpus_max = t->cpus_default > t->cpus_min ? t->cpus_default : t->cpus_min;
	if (t->cpus_max < t->cpus_min)
		fields_fail(f, ERR_FORMAT, "max", "is below min");
	if (t->cpus_default < t->cpus_min || t->cpus_default > t->cpus_max)
		fields_fail(f, ERR_FORMAT, "default", "is not from min to max");
}

static void check_lr(struct fields *f, void *object)
{
	const struct job_type *t = object;

	if (t->lr_rule == LR_NONE)
		return;
	if (isnan(t->lr_base))
		fields_fail(f, ERR_FORMAT, "base",
			    "is needed by the rule %s: the learning rate at base_batch",
			    rule_name[t->lr_rule]);
	if (isnan(t->lr_base_batch))
		fields_fail(f, ERR_FORMAT, "base_batch",
			    "is needed by the rule %s: the batch at which base is the rate",
			    rule_name[t->lr_rule]);
}

/* A request may ask for no more than the type has, unless max_gpus says so. */
static void check_resources(struct fields *f, void *object)
{
	struct job_type *t = object;

	if (!t->max_gpus)
		t->max_gpus = t->gpus;
	if (t->max_gpus < t->gpus)
		fields_fail(f, ERR_FORMAT, "max_gpus", "%u are fewer than the %u of a job that asks for none",
			    t->max_gpus, t->gpus);
}

static void check_regex(struct fields *f, const char *key, const char *regex)
{
	struct err why = { 0 };

	if (regex && output_regex_check(regex, &why))
		fields_fail(f, why.code == ERR_NOMEM ? ERR_NOMEM : ERR_FORMAT, key, "%s", why.text);
}

static void check_result(struct fields *f, void *object)
{
	const struct output_spec *r = &((const struct job_type *)object)->result;

	check_regex(f, "regex", r->regex);
	check_regex(f, "epoch_regex", r->epoch_regex);
	if (r->regex && r->accuracy)
		fields_fail(f, ERR_FORMAT, "regex",
			    "finds the accuracy, so there is no place for \"accuracy\"");
	if (r->epoch_regex && r->epoch)
		fields_fail(f, ERR_FORMAT, "epoch_regex",
			    "finds the epoch, so there is no place for \"epoch\"");
}

static void read_batches(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;

	if (fields_get(f, name)) /* "job" may have said them */
		counts_read(f, name, JOB_TYPE_MAX_BATCHES, MAX_BATCH, t->batch, &t->n_batches);
}

static void write_batches(const void *object, struct json_writer *w)
{
	const struct job_type *t = object;

	put_numbers(w, t->batch, t->n_batches);
}

/* As sbatch's --gres: "gpu:2", "gpu:a100:1,license:3". */
static void read_gres(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;

	field_text(f, name, JOB_TYPE_MAX_VALUE, &t->gres);
	for (const char *s = f->rc || !t->gres ? "" : t->gres; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_.:,", *s))
			fields_fail(f, ERR_FORMAT, name, "must be devices and numbers, such as \"gpu:1\"");
	}
}

bool env_name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || (!isalpha((unsigned char)*s) && *s != '_'))
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	}
	return true;
}

/* "NAME=value" into *one. */
static void read_variable(struct fields *f, const char *name, void *one, void *owner)
{
	const char *value = json_string(json_get(f->object, name), NULL);
	char **out = one;
	size_t size;

	(void)owner;
	if (!env_name_is_good(name)) {
		fields_fail(f, ERR_FORMAT, name,
			    "is not a name of a variable: letters, digits and _, no digit first, at most %d",
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
	*out = mem_alloc(size);
	if (*out)
		snprintf(*out, size, "%s=%s", name, value);
	else
		fields_nomem(f, name);
}

static void read_env(struct fields *f, const char *name, void *object)
{
	static const struct named_list variables = { "variables", MAX_ENV, sizeof(char *), read_variable };
	struct job_type *t = object;

	named_read(f, name, &variables, NULL, (void **)&t->env, &t->n_env);
}

static void write_env(const void *object, struct json_writer *w)
{
	const struct job_type *t = object;
	char name[JOB_TYPE_MAX_NAME + 1];

	json_open(w, '{');
	for (size_t i = 0; i < t->n_env; i++) {
		const char *value = strchr(t->env[i], '=');

		snprintf(name, sizeof name, "%.*s", (int)(value - t->env[i]), t->env[i]);
		json_kv_string(w, name, value + 1);
	}
	json_close(w, '}');
}

static void write_argv(const void *object, struct json_writer *w)
{
	const struct job_type *t = object;

	json_open(w, '[');
	for (size_t i = 0; i < t->n_argv; i++)
		json_put_string(w, t->argv[i]);
	json_close(w, ']');
}

/* ---- the table ---- */

#define AT(member) .at = offsetof(struct job_type, member)
static const struct key cpus_keys[] = {
	{ "min", KEY_UINT32, AT(cpus_min), 1, JOB_TYPE_MAX_CPUS, 1 },
	{ "max", KEY_UINT32, AT(cpus_max), 1, JOB_TYPE_MAX_CPUS, 0 },
	{ "default", KEY_UINT32, AT(cpus_default), 1, JOB_TYPE_MAX_CPUS, 0 },
	{ 0 },
};

static const struct key resources_of_type_keys[] = {
	{ "gpus", KEY_UINT32, AT(gpus), 0, JOB_TYPE_MAX_GPUS, 0 },
	{ "max_gpus", KEY_UINT32, AT(max_gpus), 0, JOB_TYPE_MAX_GPUS, 0 },
	{ "records_per_gpu", KEY_NUMBER, AT(records_per_gpu), 1.0, MAX_BATCH, NAN },
	{ "gpu_memory_mb", KEY_NUMBER, AT(gpu_memory_mb), 0.0, MAX_MB, NAN },
	{ "gpu_memory_mb_per_record", KEY_NUMBER, AT(gpu_memory_mb_per_record), 0.0, MAX_MB, NAN },
	{ 0 },
};

static const struct key lr_keys[] = {
	{ "rule", KEY_CHOICE, AT(lr_rule), .choice = rule_name, .initial = LR_NONE },
	{ "base", KEY_NUMBER, AT(lr_base), 1e-12, 1e6, NAN },
	{ "base_batch", KEY_NUMBER, AT(lr_base_batch), 1.0, MAX_BATCH, NAN },
	{ 0 },
};

static const struct key limit_keys[] = {
	{ "file_mb", KEY_UINT64, AT(max_file_mb), 0, MAX_MB, 0 },
	{ "address_mb", KEY_UINT64, AT(max_address_mb), 0, MAX_MB, 0 },
	{ "open_files", KEY_UINT32, AT(max_open_files), 0, 1048576, 0 },
	{ "nice", KEY_INT, AT(nice), -20, 19, 0 },
	{ 0 },
};

static const struct key result_keys[] = {
	{ "accuracy", KEY_TEXT, AT(result.accuracy), .max = OUTPUT_MAX_NAME },
	{ "epoch", KEY_TEXT, AT(result.epoch), .max = OUTPUT_MAX_NAME },
	{ "regex", KEY_TEXT, AT(result.regex), .max = OUTPUT_MAX_REGEX },
	{ "epoch_regex", KEY_TEXT, AT(result.epoch_regex), .max = OUTPUT_MAX_REGEX },
	{ "scale", KEY_CHOICE, AT(result.scale), .choice = output_scale_name, .initial = OUTPUT_AUTO },
	{ 0 },
};

const struct key job_type_keys[] = {
	{ "job", KEY_PATH, AT(job), .read = job_read, .write = job_write }, /* first: the others add to it */
	{ "about", KEY_TEXT, AT(about), .max = MAX_ABOUT },
	{ "argv", KEY_OTHER, .write = write_argv }, /* read with the parameters, which are its placeholders */
	{ "params", KEY_OTHER, .read = params_read, .write = params_write },
	{ "cpus", KEY_PART, .part = cpus_keys, .check = check_cpus },
	{ "batches", KEY_OTHER, .read = read_batches, .write = write_batches },
	{ "lr", KEY_PART, .part = lr_keys, .check = check_lr },
	{ "memory_mb", KEY_NUMBER, AT(memory_mb), 0.0, MAX_MB, NAN },
	{ "memory_mb_per_record", KEY_NUMBER, AT(memory_mb_per_record), 0.0, MAX_MB, NAN },
	{ "resources", KEY_PART, .part = resources_of_type_keys, .check = check_resources },
	{ "max_time_s", KEY_NUMBER, AT(max_time_s), 0.0, MAX_TIME_S, 0.0 },
	{ "max_output_mb", KEY_NUMBER, AT(max_output_mb), 0.0, MAX_MB, NAN },
	{ "limits", KEY_PART, .part = limit_keys },
	{ "result", KEY_PART, .part = result_keys, .check = check_result },
	{ "epochs_param", KEY_TEXT, AT(epochs_param), .read = epochs_param_read },
	{ "epochs_choices", KEY_OTHER, .read = epochs_choices_read, .write = epochs_choices_write },
	{ "early_stop", KEY_BOOL, AT(early_stop), .read = early_stop_read },
	{ "steer", KEY_BOOL, AT(steer), .read = steer_read },
	{ "probe", KEY_CHOICE, AT(probe), .choice = probe_name },
	{ "model", KEY_PATH, AT(model) },
	{ "table", KEY_PATH, AT(table) },
	{ "schema", KEY_PATH, AT(schema) },
	{ "curves", KEY_PATH, AT(curves) },
	{ "first_after", KEY_SIZE, AT(first_after), 0, 1e9, 0 },
	{ "executor", KEY_TEXT, AT(executor), .max = JOB_TYPE_MAX_NAME },
	{ "gres", KEY_TEXT, AT(gres), .read = read_gres },
	{ "work_dir", KEY_PATH, AT(work_dir) },
	{ "env", KEY_OTHER, .read = read_env, .write = write_env },
	{ "unbuffered", KEY_BOOL, AT(unbuffered), .initial = 1 },
	{ "terminal", KEY_BOOL, AT(terminal) },
	{ 0 },
};
#undef AT

/* ---- reading, writing, freeing ---- */

int job_type_from_json(const char *where, const char *name, const struct json *v, struct job_type *out,
		       struct err *err)
{
	const char *known[KEYS_MAX + 1];
	struct job_type t = { 0 };
	struct fields f;

	if (!name_is_good(name))
		return err_fail(err, ERR_FORMAT, "%s: is not a name of a type: " NAME_RULE " %d", where,
				JOB_TYPE_MAX_NAME);
	keys_names(job_type_keys, known);
	fields_open(&f, where, ".", v, known, err);
	t.name = f.rc ? NULL : mem_strdup(name);
	if (!t.name)
		fields_nomem(&f, "name");
	keys_default(job_type_keys, &t);
	keys_read(&f, job_type_keys, &t);
	if (f.rc) {
		job_type_release(&t);
		return f.rc;
	}
	*out = t;
	return 0;
}

void job_type_to_json(const struct job_type *t, struct json_writer *w)
{
	json_open(w, '{');
	keys_write(job_type_keys, t, w);
	json_close(w, '}');
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
	keys_release(job_type_keys, t);
	*t = (struct job_type){ 0 };
}
