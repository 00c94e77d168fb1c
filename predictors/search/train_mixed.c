/* What a trained model makes of the runs beside jobs of another kind (mixed.h): how far off it is in each of
 * them, and, for the level to compare that with, in runs of the same jobs without such neighbours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/search/train_internal.h"

#define PLAIN_RUNS 40 /* of a kind of job that are kept; more hardly make its level surer */

static double number_at(const struct table *t, enum feature_role role, size_t row)
{
	int at = schema_role(t->schema, role);

	return at >= 0 && t->column[at].number ? t->column[at].number[row] : NAN;
}

/* "network=lenet5,data=mnist". NULL: no memory, or too long. */
static char *categories_of(const struct table *t, size_t row)
{
	struct strbuf b = { 0 };
	char *out = NULL;

	for (size_t i = 0; i < t->schema->n_columns; i++) {
		const char *value = t->column[i].category ? t->column[i].category[row] : NULL;

		if (value)
			strbuf_printf(&b, "%s%s=%s", b.len ? "," : "", schema_source_name(t->schema, i),
				      value);
	}
	if (!b.failed && b.len <= MIXED_MAX_TEXT)
		out = mem_strdup(strbuf_text(&b));
	strbuf_release(&b);
	return out;
}

static int add_run(const struct training *tr, size_t row, bool mixed, struct err *err)
{
	const struct table *t = tr->p->table;
	struct mixed_runs *m = &tr->model->mixed;
	double jobs = number_at(t, ROLE_NJOBS, row), cpus = number_at(t, ROLE_CPUS, row),
	       processes = number_at(t, ROLE_PROCESSES, row), other = number_at(t, ROLE_OTHER, row),
	       time_s = mixed ? t->mixed_time[row] : t->time[row], predicted_s;
	struct mixed_run run = { .of = categories_of(t, row),
				 .beside = mem_strdup(mixed ? t->beside[row] : "") };

	predictor_predict(&tr->model->time.predictor, tr->x + row * tr->model->features->n, 1, &predicted_s);
	jobs = isnan(jobs) ? 2.0 : fmax(jobs, 1.0);
	cpus = isnan(cpus) ? 1.0 : cpus;
	processes = isnan(processes) ? jobs * cpus : fmax(processes, cpus);
	run.held = mixed ? processes - cpus : 0.0;
	run.processes = processes + (other > 0.0 ? other : 0.0);
	run.score = log(time_s / predicted_s);
	if (run.of && run.beside && isfinite(run.score) && m->n < MIXED_MAX_RUNS) {
		m->run[m->n++] = run;
		return 0;
	}
	free(run.of);
	free(run.beside);
	return run.of && run.beside ? 0 : err_nomem(err, "runs beside others");
}

/* Rows that epochs of a run make are not independent: the run counts once, as it was. */
static bool is_run(const struct training *tr, size_t row)
{
	return !tr->p->run || tr->p->run[tr->p->table->row[row]] == tr->p->table->row[row];
}

static bool is_mixed(const struct training *tr, size_t row)
{
	const struct table *t = tr->p->table;

	return t->beside && t->beside[row] && t->mixed_time[row] > 0.0 && is_run(tr, row);
}

int train_mixed(struct training *tr, struct err *err)
{
	const struct table *t = tr->p->table;
	const struct spread *spread = tr->model->time.spread;
	size_t n_features = tr->model->features->n, kinds = 0;
	uint64_t *kind;
	int rc = 0;

	if (!t->beside)
		return 0;
	kind = mem_array(t->n_rows, sizeof *kind);
	tr->model->mixed.run = mem_calloc(MIXED_MAX_RUNS, sizeof *tr->model->mixed.run);
	if (!kind || !tr->model->mixed.run)
		rc = err_nomem(err, "runs beside others");
	for (size_t i = 0; i < t->n_rows && !rc; i++) {
		uint64_t own = spread_kind(spread, tr->x + i * n_features);
		size_t k = 0;

		if (!is_mixed(tr, i))
			continue;
		rc = add_run(tr, i, true, err);
		while (k < kinds && kind[k] != own)
			k++;
		if (k == kinds)
			kind[kinds++] = own;
	}
	for (size_t k = 0; k < kinds && !rc; k++) {
		size_t n = 0;

		for (size_t i = 0; i < t->n_rows && n < PLAIN_RUNS && !rc; i++) {
			if (!(t->time[i] > 0.0) || !is_run(tr, i) ||
			    spread_kind(spread, tr->x + i * n_features) != kind[k])
				continue;
			rc = add_run(tr, i, false, err);
			n++;
		}
	}
	free(kind);
	return rc;
}
