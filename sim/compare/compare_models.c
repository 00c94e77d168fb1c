/* Trains the models that the policies of a comparison decide with, one set for each fold, and keeps them
 * between comparisons that learn from the same data. */
#include "sim/compare/compare_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/data/table.h"
#include "sim/replay/scaled_model.h"

void compare_models_release(struct compare_models *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		if (f->trained && !f->cached)
			sim_models_free(f->trained[i]);
		if (f->table)
			csv_free(f->table[i]);
	}
	scaled_model_free(f->given_scaled);
	free(f->table);
	free(f->trained);
	free(f->of);
}

static bool wants_model(const struct sim_policy *s)
{
	return s->choice.policy && s->choice.policy->predictor;
}

static bool takes_given(const struct compare_params *p, const struct sim_policy *s)
{
	return p->model && !policy_accepts(&s->choice, p->model, NULL);
}

/* ---- the model given ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A model that has learnt from the rows that happen would only repeat them. */
static int refuse_seen_table(const struct model *m, const char *path, struct err *err)
{
	struct csv *csv = NULL;
	struct table *table = NULL;
	bool seen = same_file(m->data_name, path);
	int rc = seen ? 0 : csv_read_file(path, &csv, err);

	if (!seen && !rc && !table_read(csv, m->schema, true, &table, NULL))
		seen = table->fingerprint == m->data_fingerprint;
	table_free(table);
	csv_free(csv);
	if (rc || !seen)
		return rc;
	return err_fail(
		err, ERR_ARG,
		"the model was trained on %s, and the same rows happen in this world, so it would only "
		"repeat them; models that are trained here (--model none) learn from the rows that do not "
		"happen",
		text_tail(path, 100));
}

int compare_check_model(const struct compare_params *p, bool out_takes[SIM_MAX_POLICIES], struct err *err)
{
	static const char measured[] = "measured:";
	struct err why = { 0 };
	bool any = false;
	int rc = 0;

	if (!strncmp(p->world.spec, measured, strlen(measured))) {
		const char *path = p->world.spec + strlen(measured), *plus = strstr(path, ".csv+");
		char *runs = plus ? mem_strndup(path, (size_t)(plus - path) + 4) : mem_strdup(path);

		rc = runs ? refuse_seen_table(p->model, runs, err) : err_nomem(err, "the name of a table");
		free(runs);
	}
	for (size_t i = 0; i < p->n_policies && !rc; i++) {
		out_takes[i] = wants_model(&p->policy[i]) &&
			       !policy_accepts(&p->policy[i].choice, p->model, &why);
		any |= out_takes[i];
	}
	return rc || any ? rc : err_fail(err, ERR_ARG, "no policy takes the model: %s", why.text);
}

/* Policies whose model is trained here. */
static size_t policies_to_train(const struct compare_params *p, struct sim_policy out[SIM_MAX_POLICIES])
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_policies; i++)
		if (wants_model(&p->policy[i]) && !takes_given(p, &p->policy[i]))
			out[n++] = p->policy[i];
	return n;
}

/* ---- trained before ---- */

#define CACHE_MAX 256

struct cached { /* models of one fold for some policies, and the table they borrow from */
	size_t fold;
	char policies[SIM_MAX_POLICIES * SIM_POLICY_NAME];
	struct csv *table;
	struct sim_models *models;
};

struct compare_cache {
	struct cached entry[CACHE_MAX];
	size_t n;
};

int compare_cache_new(struct compare_cache **out, struct err *err)
{
	struct compare_cache *c = mem_calloc(1, sizeof *c);

	if (!c)
		return err_nomem(err, "the models of a comparison");
	*out = c;
	return 0;
}

void compare_cache_free(struct compare_cache *c)
{
	for (size_t i = 0; c && i < c->n; i++) {
		sim_models_free(c->entry[i].models);
		csv_free(c->entry[i].table);
	}
	free(c);
}

static void name_policies(const struct sim_policy *policy, size_t n, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s,", policy[i].name);
}

static struct cached *cache_find(struct compare_cache *c, size_t fold, const char *policies)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (c->entry[i].fold == fold && !strcmp(c->entry[i].policies, policies))
			return &c->entry[i];
	return NULL;
}

/* ---- training ---- */

static int train_fold(struct compare_runs *x, size_t fold, const struct sim_policy *policy, size_t n_policies,
		      struct compare_models *f, struct err *err)
{
	const struct compare_params *p = x->p;
	const struct world *w = x->r->world[fold]; /* the first replication of this fold */
	struct cached made = { .fold = fold }, *before;
	struct sim_models_params m = {
		.policy = policy,
		.n_policies = n_policies,
		.schema = p->world.schema,
		.given = world_given(w),
		.cluster = world_cluster(w),
		.seed = p->seed,
		.pool = p->pool,
		.on_progress = compare_runs_progress,
		.owner = x,
	};
	int status = world_training(w, fold, p->seed, &f->table[fold], err);

	if (status)
		return status;
	name_policies(policy, n_policies, made.policies, sizeof made.policies);
	before = cache_find(p->cache, fold, made.policies);
	if (before) {
		f->trained[fold] = before->models;
		return sim_models_rescale(before->models, m.given, m.cluster, err);
	}
	if (f->cached) /* the caller's table goes its own way */
		status = world_training(w, fold, p->seed, &made.table, err);
	m.table = f->cached ? made.table : f->table[fold];
	if (!status)
		status = sim_models_train(&m, &f->trained[fold], err);
	if (f->cached && status) {
		csv_free(made.table);
	} else if (f->cached) {
		made.models = f->trained[fold];
		p->cache->entry[p->cache->n++] = made;
	}
	if (status && f->n > 1)
		err_prefix(err, "fold %zu", fold + 1);
	return status;
}

static int scale_given(struct compare_runs *x, struct compare_models *f, struct err *err)
{
	double measured = world_given(x->r->world[0])->cores, cores = world_cluster(x->r->world[0])->cores;

	if (!x->p->model || measured == cores)
		return 0;
	return scaled_model_new(x->p->model, measured, cores, &f->given_scaled, err);
}

int compare_models_of(struct compare_runs *x, struct compare_models *f, struct err *err)
{
	const struct compare_params *p = x->p;
	struct sim_policy train[SIM_MAX_POLICIES];
	size_t n_train = policies_to_train(p, train), folds = world_folds(x->r->world[0]);
	int status;

	x->folds = folds ? folds : 1;
	f->n = x->folds < p->replications ? x->folds : p->replications;
	f->cached = p->cache && p->cache->n + f->n <= CACHE_MAX;
	f->table = mem_calloc(f->n, sizeof(struct csv *));
	f->trained = mem_calloc(f->n, sizeof(struct sim_models *));
	f->of = mem_calloc(f->n * p->n_policies, sizeof(const struct model *));
	if (!f->table || !f->trained || !f->of)
		return err_nomem(err, "the models of a comparison");
	status = scale_given(x, f, err);
	for (size_t i = 0; !status && n_train && i < f->n; i++)
		status = train_fold(x, i, train, n_train, f, err);
	for (size_t i = 0; !status && i < f->n * p->n_policies; i++) {
		const struct sim_policy *s = &p->policy[i % p->n_policies];

		if (!wants_model(s))
			continue;
		if (takes_given(p, s))
			f->of[i] = f->given_scaled ? f->given_scaled : p->model;
		else
			f->of[i] = sim_models_of(f->trained[i / p->n_policies], s);
	}
	x->model = f->of;
	return status;
}

/* By column, as `postrider train` prints them: a category may be several features. */
static int copy_importances(const struct model *m, struct compare_policy *c, struct err *err)
{
	size_t n_sources = m->schema->n_columns + m->schema->n_derived;
	double *sum = mem_calloc(n_sources ? n_sources : 1, sizeof *sum);
	bool *there = mem_calloc(n_sources ? n_sources : 1, sizeof *there);
	int status = 0;

	c->importance = mem_calloc(n_sources ? n_sources : 1, sizeof *c->importance);
	c->feature = mem_calloc(n_sources ? n_sources : 1, sizeof *c->feature);
	if (!sum || !there || !c->importance || !c->feature)
		status = err_nomem(err, "the models of a comparison");
	for (size_t i = 0; !status && i < m->features->n; i++) {
		sum[m->features->feature[i].source] += m->time.importance[i];
		there[m->features->feature[i].source] = true;
	}
	for (size_t i = 0; !status && i < n_sources; i++) {
		if (!there[i])
			continue;
		c->feature[c->n_features] = mem_strdup(schema_source_name(m->schema, i));
		if (!c->feature[c->n_features])
			status = err_nomem(err, "the models of a comparison");
		else
			c->importance[c->n_features++] = sum[i];
	}
	free(sum);
	free(there);
	return status;
}

int compare_models_importances(struct compare_runs *x, struct err *err)
{
	int status = 0;

	for (size_t i = 0; !status && i < x->p->n_policies; i++)
		if (x->model[i] && x->model[i]->time.importance)
			status = copy_importances(x->model[i], &x->r->policy[i], err);
	return status;
}
