/* Configurations: whatever is taken must write to a text that reads back to the same one, and every job type
 * in it must make a command out of values it allows itself. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config *parse(const char *text, size_t len)
{
	struct json *v = NULL;
	struct config *c = NULL;
	struct err err = { 0 };

	if (!json_parse("fuzz", text, len, &v, &err) && config_from_json("fuzz", v, &c, &err) && !err.text[0])
		abort(); /* a refusal without a reason */
	json_free(v);
	return c;
}

static struct strbuf written(const struct config *c)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	config_to_json(c, &w);
	return out;
}

/* A value for each parameter that has to be given. */
static struct strbuf given_for(const struct job_type *t)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	json_open(&w, '{');
	for (size_t i = 0; i < t->n_params; i++) {
		const struct job_param *p = &t->param[i];

		if (!p->required)
			continue;
		json_put_key(&w, p->name);
		if (p->kind == PARAM_WORD)
			json_put_string(&w, p->n_words ? p->word[p->n_words - 1] : "x");
		else
			json_put_number(&w, isfinite(p->min) ? p->min : isfinite(p->max) ? p->max : 0.0);
	}
	json_close(&w, '}');
	return out;
}

static void check_command(const struct job_type *t, const struct job_params *p)
{
	struct job_argv_values values = { .job = "7", .dir = "/d", .batch = 128.0, .cpus = t->cpus_default };
	struct err err = { 0 };
	char **argv = NULL;

	values.lr = job_type_lr(t, values.batch);
	if (isinf(values.lr))
		abort();
	if (job_type_argv(t, p, &values, &argv, &err)) {
		if (!err.text[0])
			abort();
		return; /* a word became too long */
	}
	for (size_t i = 0; argv[i]; i++) {
		if (i >= t->n_argv || strlen(argv[i]) > JOB_TYPE_MAX_ARG)
			abort();
	}
	if (t->n_argv && strcmp(argv[0], t->argv[0]) && !strchr(t->argv[0], '{'))
		abort(); /* the program is the operator's, whatever the values are */
	argv_free(argv);
}

static void try_type(const struct job_type *t)
{
	struct strbuf given = given_for(t), back = { 0 };
	struct job_params p = { 0 };
	struct json *v = NULL;
	struct json_writer w;

	if (json_parse("given", strbuf_text(&given), given.len, &v, NULL) ||
	    job_params_read(t, v, NULL, &p, NULL, NULL))
		abort(); /* its own bounds are no good */
	json_begin(&w, &back, false);
	job_params_to_json(t, &p, &w);
	check_command(t, &p);
	job_params_release(&p);
	json_free(v);
	v = NULL;
	/* What is stored of a job must be good enough to restore it. */
	if (json_parse("back", strbuf_text(&back), back.len, &v, NULL) ||
	    job_params_read(t, v, NULL, &p, NULL, NULL))
		abort();
	job_params_release(&p);
	json_free(v);
	strbuf_release(&given);
	strbuf_release(&back);
}

/* Whatever counts a type offers must be a range a job may ask for, and the other way round. */
static void try_epochs(const struct job_type *t)
{
	double out[16];
	size_t n = job_type_epochs(t, 1.0, 1e6, out, 16);

	for (size_t i = 0; i < n; i++) {
		if (!(out[i] >= 1.0 && out[i] <= 1e6) || (i && out[i] <= out[i - 1]))
			abort();
	}
	if (t->n_epochs &&
	    (!n || out[0] != t->epochs[0] || (n > 1 && out[n - 1] != t->epochs[t->n_epochs - 1])))
		abort();
}

static void try_notice(const struct config *c)
{
	struct config_notice n = {
		.job = 7, .type = "t", .tenant = "x", .event = "late", .slo_s = NAN, .late_s = 3
	};
	char **argv = NULL;
	size_t words = 0;

	if (config_notify_argv(c, &n, &argv, NULL)) {
		if (c->n_notify)
			abort();
		return;
	}
	while (argv[words])
		words++;
	if (words != c->n_notify)
		abort();
	argv_free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c = parse((const char *)data, size), *d;
	struct strbuf a, b;

	if (!c)
		return 0;
	a = written(c);
	d = parse(strbuf_text(&a), a.len);
	if (!d)
		abort();
	b = written(d);
	if (a.len != b.len || memcmp(a.text, b.text, a.len) != 0)
		abort();
	if (config_reloadable(c, d, NULL))
		abort();
	for (size_t i = 0; i < c->n_types; i++) {
		if (config_type(c, c->type[i].name) != &c->type[i])
			abort();
		try_type(&c->type[i]);
		try_epochs(&c->type[i]);
	}
	try_notice(c);
	if (config_tenant_of(c, 7, NULL, NULL) >= (int)c->n_tenants)
		abort();
	strbuf_release(&a);
	strbuf_release(&b);
	config_free(c);
	config_free(d);
	return 0;
}
