/* A configuration and its model, loaded together. See setup.h. */
#include "scheduler/daemon/setup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/store/store.h"

void setup_free(struct setup *s)
{
	if (!s)
		return;
	free(s->columns);
	model_free(s->model);
	config_free(s->config);
	free(s);
}

static int read_model(struct setup *s, struct err *err)
{
	bool compiled = s->model != NULL;
	int rc;

	if (!s->config->model) {
		if (s->policy.policy->predictor)
			return err_fail(err, ERR_FORMAT,
					"%s: model: the policy %s decides by a model, and none is named",
					s->config->path ? s->config->path : "configuration",
					s->policy.policy->name);
		return 0;
	}
	rc = s->model ? 0 : model_load(s->config->model, &s->model, err);
	if (!rc && !s->model->time.predictor.ops)
		rc = err_fail(err, ERR_FORMAT, "%s: holds no model of time", s->config->model);
	if (!rc)
		rc = policy_accepts(&s->policy, s->model, err);
	if (!rc && !compiled)
		rc = model_compile(s->model, err);
	if (!rc)
		snprintf(s->model_name, sizeof s->model_name, "%s-%016llx",
			 s->model->time.predictor.ops->name, (unsigned long long)s->model->data_fingerprint);
	return rc;
}

/* Numbers go to number columns; anything may be a category, which is text. */
static int map_type(const struct setup *s, const struct job_type *t, struct type_columns *out,
		    struct err *err)
{
	const struct schema *schema = s->model ? s->model->schema : NULL;

	out->cpus = schema ? schema_role(schema, ROLE_CPUS) : -1;
	for (size_t i = 0; i < t->n_params; i++) {
		const struct job_param *p = &t->param[i];
		int source = schema ? schema_find_any(schema, p->name) : -1;

		out->param[i] = source;
		if (source < 0)
			continue;
		if (p->kind == PARAM_WORD &&
		    ((size_t)source >= schema->n_columns || schema->column[source].kind == COLUMN_NUMBER))
			return err_fail(err, ERR_FORMAT,
					"%s: types.%s.params.%s: a word here, but a number in the model %s",
					s->config->path ? s->config->path : "configuration", t->name, p->name,
					s->config->model);
	}
	return 0;
}

int setup_new(struct config *config, struct model *model, struct setup **out, struct err *err)
{
	struct setup *s = mem_calloc(1, sizeof *s);
	int rc;

	if (!s) {
		model_free(model);
		config_free(config);
		return err_nomem(err, "the configuration");
	}
	s->config = config;
	s->model = model;
	rc = policy_parse(config->policy, &s->policy, err);
	if (!rc)
		rc = read_model(s, err);
	if (!rc) {
		s->columns = mem_calloc(config->n_types ? config->n_types : 1, sizeof *s->columns);
		if (!s->columns)
			rc = err_nomem(err, "the configuration");
	}
	for (size_t i = 0; !rc && i < config->n_types; i++)
		rc = map_type(s, &config->type[i], &s->columns[i], err);
	if (rc) {
		setup_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* Beside it and renamed: at no moment is there none. */
void setup_link_model(const struct setup *s)
{
	char link[PATH_MAX], fresh[PATH_MAX], *target;
	const char *dir = s->config->state_dir;

	if (snprintf(link, sizeof link, "%s/" STORE_MODEL_LINK, dir) >= (int)sizeof link ||
	    snprintf(fresh, sizeof fresh, "%s/." STORE_MODEL_LINK ".new", dir) >= (int)sizeof fresh)
		return;
	if (!s->model) {
		unlink(link);
		return;
	}
	target = realpath(s->config->model, NULL);
	unlink(fresh);
	if (!target || symlink(target, fresh) || rename(fresh, link))
		log_warn("%s: no link to the model in use: %s", link, strerror(errno));
	free(target);
}

void setup_sched_params(const struct setup *s, struct sched_params *out)
{
	const struct config *c = s->config;

	*out = (struct sched_params){
		.policy = s->policy,
		.model = s->model,
		.machine = { .cores = c->cores, .slots = c->slots, .memory_mb = c->memory_mb },
		/* what runs is not queued: each holds at least one slot */
		.max_jobs = c->max_queued + c->slots,
		.seed = c->seed,
		.window_s = c->fair_window_s,
		.adapt = c->learning.adapt,
		.hysteresis = c->learning.hysteresis,
		.explore = c->learning.explore,
		.max_unstarted_cpus = c->max_unstarted_cpus_per_uid ? c->max_unstarted_cpus_per_uid
								    : (c->slots + 1) / 2,
	};
}

void setup_values_fill(const struct setup *s, const struct job_type *t, const struct job_params *params,
		       uint32_t cpus, struct job_values *out)
{
	const struct type_columns *columns = &s->columns[t - s->config->type];
	const struct schema *schema = setup_schema(s);

	job_values_reset(out, schema);
	for (size_t i = 0; i < t->n_params; i++) {
		if (params->value[i])
			job_values_put(out, schema, columns->param[i], params->value[i], params->number[i]);
	}
	job_values_put(out, schema, columns->cpus, NULL, cpus);
}
