/* See admit.h. */
#include "scheduler/core/admit/admit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/core/admit/knowledge.h"

/* ---- what is known of such jobs ---- */

static void say_untrained(const struct admit_memory *m, char *why, size_t size)
{
	static const char no_model[] = "there is no model of such jobs yet: it runs without a promise";

	if (m->training)
		snprintf(why, size, "%s; the first is being trained", no_model);
	else if (m->first_after == 1)
		snprintf(why, size, "%s; the first is trained when it has ended", no_model);
	else if (m->first_after)
		snprintf(why, size, "%s; the first is trained after %zu of them, and %zu have ended",
			 no_model, m->first_after, m->ended);
	else
		snprintf(why, size, "%s until one is trained", no_model);
}

bool admit_known(const struct admit_memory *m, const struct admit_job *j, char *why, size_t size)
{
	const struct sched_request *r = j->request;
	char stranger[STRANGERS_TEXT];
	size_t alike, others;

	why[0] = '\0';
	if (!j->model && m->predicts) {
		say_untrained(m, why, size);
		return false;
	}
	if (!j->model || !r->values || !r->values->number ||
	    model_knows(j->model, r->values, r->n_epochs > 0, stranger, sizeof stranger))
		return true;
	strangers_ended(m->strangers, r->type, stranger, &alike, &others);
	/* Without adaptation, or among other jobs of the type, what such jobs took does not reach their
	 * bounds. */
	if (m->adapt && !others && alike >= m->promise_after)
		return true;
	if (!m->adapt || others)
		snprintf(why, size, "%s: it runs without a promise until a model is trained on such jobs",
			 stranger);
	else
		snprintf(why, size,
			 "%s: it runs without a promise, as %zu such jobs have ended and %zu are needed",
			 stranger, alike, m->promise_after);
	return false;
}

/* ---- batches that it cannot be run with ---- */

static bool fails(const struct admit_memory *m, const struct admit_job *j, double batch, int64_t now_ns)
{
	struct failing_who who = { j->request->type, j->request->user, j->command };

	return failing_has(m->failing, who, batch, now_ns);
}

/* Into t, those that do not fail; none of them where all do. */
static void drop_failing(const struct admit_memory *m, const struct admit_job *j, int64_t now_ns,
			 struct admit_terms *t)
{
	const struct sched_request *r = j->request;
	const double *from = r->batch ? r->batch : j->model ? j->model->candidate : NULL;
	size_t n = r->batch ? r->n_batches : j->model ? j->model->n_candidates : 0, kept = 0;

	if (!m->failing || !m->failing->n || j->named)
		return;
	for (size_t i = 0; i < n && i < DECIDE_MAX_CANDIDATES; i++)
		if (!fails(m, j, from[i], now_ns))
			t->batch[kept++] = from[i];
	t->n_batches = kept < n ? kept : 0;
}

static void next_smaller(const struct admit_memory *m, const struct admit_job *j, int64_t now_ns,
			 struct admit_terms *t)
{
	const struct sched_request *r = j->request;
	const double *from = j->n_all ? j->all : r->batch ? r->batch : j->model ? j->model->candidate : NULL;
	size_t n = j->n_all ? j->n_all : r->batch ? r->n_batches : j->model ? j->model->n_candidates : 0;
	double best = 0.0;

	if (!fails(m, j, j->failed_batch, now_ns))
		return;
	for (size_t i = 0; i < n; i++)
		if (from[i] < j->failed_batch && from[i] > best && !fails(m, j, from[i], now_ns))
			best = from[i];
	if (best > 0.0) {
		t->batch[0] = best;
		t->n_batches = 1;
	}
}

/* ---- jobs that nothing can be promised to ---- */

static void take_only(struct admit_terms *t, double batch, double epochs)
{
	t->batch[0] = batch;
	t->n_batches = 1;
	t->epochs = epochs;
}

/* The candidate that teaches at the least cost: what could best be in time, or the fastest. */
static const struct candidate *to_learn_from(const struct decision *d)
{
	const struct candidate *best = isnan(d->offer.chance) ? NULL : &d->offer;

	for (size_t i = 0; i < d->n_candidates && isnan(d->offer.chance); i++) {
		const struct candidate *c = &d->candidate[i];

		if (!(c->reasons & REASONS_NO_ROOM) && (!best || c->time_s < best->time_s))
			best = c;
	}
	return best;
}

/* Of a job like none the model has seen, its belief is all there is: the candidate that would be promised, or
 * the likeliest to be in time. */
static int best_guess(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *d,
		      struct admit_terms *t, struct err *err)
{
	struct sched_request q = admit_request(t, r);
	enum sched_verdict verdict;
	const struct candidate *c;
	int rc;

	if (isnan(r->slo_s))
		return 0;
	q.slo_s = r->slo_s;
	q.best_effort = false;
	q.chance = 0.0;
	rc = sched_what_if(s, now_ns, &q, d, &verdict, err);
	if (rc)
		return rc;
	c = d->chosen >= 0 ? &d->candidate[d->chosen] : to_learn_from(d);
	if (c)
		take_only(t, c->decision, r->n_epochs ? c->epochs : NAN);
	return 0;
}

/* The model has learnt from a few runs: of what can be promised, a batch never tried teaches most. */
static int untried_batch(struct sched *s, int64_t now_ns, const struct admit_memory *m,
			 const struct admit_job *j, struct decision *d, struct admit_terms *t,
			 struct err *err)
{
	struct sched_request q = admit_request(t, j->request);
	double batch[DECIDE_MAX_CANDIDATES], ignored;
	enum sched_verdict verdict;
	size_t n = 0;
	int rc = sched_what_if(s, now_ns, &q, d, &verdict, err);

	for (size_t i = 0; !rc && i < d->n_candidates; i++)
		if (d->candidate[i].feasible && first_untried(m->first, q.type, d->candidate[i].decision))
			batch[n++] = d->candidate[i].decision;
	if (n)
		take_only(t, first_choose(m->first, q.type, batch, n, &ignored), NAN);
	return rc;
}

/* A job without a model takes the batch that is least known. */
static void first_batch(const struct admit_memory *m, const struct sched_request *r, struct admit_terms *t)
{
	const double *from = t->n_batches ? t->batch : r->batch;
	size_t n = t->n_batches ? t->n_batches : r->n_batches;

	if (n)
		take_only(t, first_choose(m->first, r->type, from, n, &t->guess_s), NAN);
}

int admit_terms(struct sched *s, int64_t now_ns, const struct admit_memory *m, const struct admit_job *j,
		struct decision *scratch, struct admit_terms *out, struct err *err)
{
	const struct sched_request *r = j->request;
	struct admit_terms *t = out;

	t->n_batches = 0;
	t->epochs = NAN;
	t->guess_s = r->guess_s;
	t->slo_s = r->slo_s;
	t->why[0] = '\0';
	t->again = j->again;
	drop_failing(m, j, now_ns, t);
	if (j->again) { /* of a job whose run failed no less than the rest of its limit */
		next_smaller(m, j, now_ns, t);
		t->slo_s -= j->waited_s;
		t->slo_s = t->slo_s > 0.0 && j->promised ? t->slo_s : NAN;
		t->promise = true;
		return 0;
	}
	t->promise = admit_known(m, j, t->why, sizeof t->why);
	if (t->promise && m->young && j->model && !j->named)
		return untried_batch(s, now_ns, m, j, scratch, t, err);
	if (t->promise)
		return 0;
	t->slo_s = NAN;
	if (j->model)
		return best_guess(s, now_ns, r, scratch, t, err);
	first_batch(m, r, t);
	return 0;
}

struct sched_request admit_request(const struct admit_terms *t, const struct sched_request *r)
{
	struct sched_request q = *r;

	if (t->n_batches) {
		q.batch = t->batch;
		q.n_batches = t->n_batches;
	}
	if (!isnan(t->epochs) && r->n_epochs) {
		q.epochs = &t->epochs;
		q.n_epochs = 1;
	}
	q.guess_s = t->guess_s;
	q.slo_s = t->slo_s;
	if (t->again) {
		q.best_effort = true;
		q.chance = 0.0;
	}
	return q;
}

struct alternative admit_shorter(struct sched *s, int64_t now_ns, const struct sched_request *refused,
				 const double *epochs, size_t n_epochs, struct decision *scratch)
{
	struct sched_request q = *refused;
	enum sched_verdict verdict;

	q.epochs = epochs;
	q.n_epochs = n_epochs;
	q.chance = 0.0;
	/* It is only an advice: a question that fails says nothing. */
	if (!n_epochs || sched_what_if(s, now_ns, &q, scratch, &verdict, NULL) || verdict != SCHED_PROMISED)
		scratch->chosen = -1;
	return alternative_shorter(scratch);
}
