/* What the tables behind the models say of neighbours of another kind: it is where the scheduler starts from.
 * Ended jobs add to it. See learning.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "scheduler/daemon/learn/learning_internal.h"

struct seen_as { /* a job as the scheduler tells its kind */
	struct job_values values;
	char text[MIXED_MAX_TEXT + 1]; /* its categories, which the values point into */
	struct sched_request r;
};

/* "network=vgg,data=big": those that the model has no column for are left out. */
static int give(struct seen_as *as, const struct schema *schema, const char *categories, struct err *err)
{
	char *rest = as->text, *name;
	int rc = 0;

	snprintf(as->text, sizeof as->text, "%s", categories);
	while (!rc && (name = strsep(&rest, ","))) {
		const char *value = strchr(name, '=');

		if (!value)
			continue;
		name[value++ - name] = '\0';
		rc = job_values_bind(&as->values, schema, (const char *const[]){ name }, &value, 1, err);
	}
	return rc;
}

/* A job of the type with these categories. Where they do not say one, it is the usual one of the type. */
static int see(struct learning *l, const struct job_type *type, const char *categories, struct seen_as *out,
	       struct err *err)
{
	const struct setup *s = l->d->setup;
	const struct type_columns *columns = &s->columns[type - s->config->type];
	const struct schema *schema = setup_schema(s, columns->slot);
	int rc;

	*out = (struct seen_as){ .r = { .model = columns->slot, .cpus = 1 } };
	out->r.type = names_number(&l->d->jobs.names, type->name);
	rc = job_values_init(&out->values, schema, err);
	for (size_t i = 0; i < type->n_params && schema && !rc; i++)
		job_values_put(&out->values, schema, columns->param[i], type->param[i].otherwise, NAN);
	if (!rc && schema)
		rc = give(out, schema, categories, err);
	out->r.values = schema ? &out->values : NULL;
	return rc;
}

static int teach_run(struct learning *l, const struct job_type *own, const struct mixed_run *m,
		     struct err *err)
{
	const struct config *c = l->d->setup->config;
	char name[MIXED_MAX_TEXT + 1] = "";
	const char *categories = *m->beside ? mixed_neighbour(m->beside, name, sizeof name) : "";
	const struct job_type *type = *name ? config_type(c, name) : own;
	struct seen_as of = { 0 }, beside = { 0 };
	int rc = type ? 0 : err_fail(err, ERR_NOTFOUND, "there is no job type %s", name);

	if (!rc)
		rc = see(l, own, m->of, &of, err);
	if (!rc)
		rc = see(l, type, categories, &beside, err);
	if (!rc)
		sched_teach(l->d->sched,
			    &(struct sched_mixed){ &of.r, &beside.r, m->held, m->processes, m->score });
	job_values_release(&of.values);
	job_values_release(&beside.values);
	return rc;
}

void learning_teach_mixed(struct learning *l)
{
	const struct setup *s = l->d->setup;

	if (!sched_untaught(l->d->sched))
		return;
	for (size_t t = 0; t < s->config->n_types; t++) {
		const struct job_type *type = &s->config->type[t];
		const struct model *m = s->slot[s->columns[t].slot].model;
		size_t passed = 0;
		struct err why = { 0 };

		for (size_t i = 0; m && i < m->mixed.n; i++)
			passed += teach_run(l, type, &m->mixed.run[i], &why) != 0;
		if (passed)
			log_info("%zu runs of the table of type %s beside other jobs are passed over: %s",
				 passed, type->name, why.text);
	}
}
