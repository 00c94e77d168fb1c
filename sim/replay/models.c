/* Trains one model for each combination of predictor and view of the load that the policies want. */
#include "sim/replay/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/policy/recipe.h"
#include "sim/replay/scaled_model.h"

struct entry { /* one model, for every policy with the same recipe */
	struct policy policy; /* the first of them, with its settings */
	struct schema *schema;
	struct table *table;
	struct model *model, *scaled; /* scaled NULL: the simulated machine is the measured one */
};

struct sim_models {
	struct entry entry[SIM_MAX_POLICIES];
	size_t n;
};

void sim_models_free(struct sim_models *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		scaled_model_free(m->entry[i].scaled);
		model_free(m->entry[i].model);
		table_free(m->entry[i].table);
		schema_free(m->entry[i].schema);
	}
	free(m);
}

static const struct entry *find(const struct sim_models *m, const struct sim_policy *p)
{
	struct policy want = !p->choice.policy ? (struct policy){ 0 } : policy_resolve(&p->choice);

	for (size_t i = 0; want.predictor && i < m->n; i++)
		if (recipe_same(&m->entry[i].policy, &want))
			return &m->entry[i];
	return NULL;
}

const struct model *sim_models_of(const struct sim_models *m, const struct sim_policy *p)
{
	const struct entry *e = m ? find(m, p) : NULL;

	return e ? (e->scaled ? e->scaled : e->model) : NULL;
}

/* Rows of one run (of a table joined with its curves) have the same value in an extra column. */
#define RUN_COLUMN "run_of"

static int runs_of(const struct csv *table, uint32_t **out, struct err *err)
{
	int column = csv_column(table, RUN_COLUMN);
	uint32_t *run;
	int status = 0;

	*out = NULL;
	if (column < 0)
		return 0;
	run = mem_array(table->n_rows, sizeof *run);
	if (!run)
		return err_nomem(err, "the runs of a table");
	for (size_t i = 0; !status && i < table->n_rows; i++) {
		double v;

		status = csv_number(table, i, (size_t)column, &v, err);
		if (!status && !(v >= 0.0 && v < (double)table->n_rows))
			status = err_fail(err, ERR_FORMAT, "%s:%u: column %s: there is no such row",
					  table->name, table->line[i], RUN_COLUMN);
		if (!status)
			run[i] = (uint32_t)v;
	}
	if (status)
		free(run);
	else
		*out = run;
	return status;
}

static int copy_schema(const struct csv *table, const struct schema *given, const struct policy *p,
		       struct schema **out, struct err *err)
{
	struct schema *base = NULL, *made = NULL;
	int status = given ? 0 : schema_for_table(table, &base, err), other;

	if (!status)
		status = policy_schema(p, given ? given : base, &made, err);
	other = made ? schema_role(made, ROLE_OTHER) : -1;
	/* Other work is in the times of the table, and those are what happens: in a simulation it is
	 * noise. */
	if (!status && other >= 0 && strcmp(schema_source_name(made, (size_t)other), made->decision))
		status = schema_drop(made, (size_t)other, true, err);
	schema_free(base);
	if (status)
		schema_free(made);
	else
		*out = made;
	return status;
}

static int scale_entry(struct entry *e, const struct cluster *given, const struct cluster *cluster,
		       struct err *err)
{
	scaled_model_free(e->scaled);
	e->scaled = NULL;
	return given->cores == cluster->cores
		       ? 0
		       : scaled_model_new(e->model, given->cores, cluster->cores, &e->scaled, err);
}

static int train_entry(const struct sim_models_params *p, const struct policy *policy, const uint32_t *run,
		       struct entry *e, struct err *err)
{
	struct grid *time = NULL, *accuracy = NULL;
	struct train_params t = recipe_params(p->seed);
	struct train_report report = { 0 };
	int status = copy_schema(p->table, p->schema, policy, &e->schema, err);

	e->policy = *policy;
	if (!status)
		status = table_read(p->table, e->schema, true, &e->table, err);
	if (!status)
		status = recipe_search_time(policy, p->given ? p->given->cores : 0.0, &time, err);
	if (!status)
		status = recipe_search_accuracy(policy, run != NULL, &accuracy, err);
	if (!status) {
		t.table = e->table;
		t.run = run;
		t.grid = time;
		t.accuracy_grid = accuracy;
		t.ctx.pool = p->pool;
		t.on_progress = p->on_progress;
		t.owner = p->owner;
		t.data_name = p->table->name;
		t.created = t.program = "";
		t.group = p->group;
		t.n_groups = p->group ? p->n_groups : 0;
		status = train_model(&t, &e->model, &report, err);
		train_report_release(&report);
	}
	grid_free(time);
	grid_free(accuracy);
	if (!status)
		status = model_compile(e->model, err);
	if (!status && p->given && p->cluster)
		status = scale_entry(e, p->given, p->cluster, err);
	return status;
}

int sim_models_rescale(struct sim_models *m, const struct cluster *given, const struct cluster *cluster,
		       struct err *err)
{
	int status = 0;

	for (size_t i = 0; !status && i < m->n; i++)
		status = scale_entry(&m->entry[i], given, cluster, err);
	return status;
}

int sim_models_train(const struct sim_models_params *p, struct sim_models **out, struct err *err)
{
	struct sim_models *m = mem_calloc(1, sizeof *m);
	uint32_t *run = NULL;
	int status;

	if (!m)
		return err_nomem(err, "models");
	status = runs_of(p->table, &run, err);
	for (size_t i = 0; !status && i < p->n_policies; i++) {
		const struct sim_policy *policy = &p->policy[i];
		struct policy want;

		if (!policy->choice.policy || !policy->choice.policy->predictor || find(m, policy))
			continue;
		if (m->n == SIM_MAX_POLICIES) {
			status = err_fail(err, ERR_ARG, "more than %d different models", SIM_MAX_POLICIES);
			break;
		}
		want = policy_resolve(&policy->choice);
		status = train_entry(p, &want, run, &m->entry[m->n++], err);
		if (status)
			err_prefix(err, "a model for %s", policy->name);
	}
	free(run);
	if (status)
		sim_models_free(m);
	else
		*out = m;
	return status;
}
