/* What jobs that have ended teach the decisions to come: times and bounds that follow the machine
 * (adapt.h). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/core/decide_internal.h"
#include "scheduler/core/sched_internal.h"

static void learnt_free(struct learnt *m, size_t n)
{
	for (size_t i = 0; m && i < n; i++) {
		adapt_free(m[i].adapt);
		ledger_free(m[i].families);
		ledger_free(m[i].later);
		ledger_free(m[i].waits);
	}
	free(m);
}

void learn_release(struct sched *s)
{
	learnt_free(s->learnt, s->n_learnt);
}

/* Of the errors in log time; NaN: not known. */
static double spread_of_model(const struct model *m)
{
	const struct conformal *c = m ? &m->time.conformal : NULL;

	return c && c->log && c->n >= 8 ? c->sd * spread_typical(m->time.spread) : NAN;
}

/* One that has learnt nothing yet. */
static int learnt_init(struct learnt *m, struct err *err)
{
	int rc = adapt_new(m->without, &m->adapt, err);

	if (!rc)
		rc = ledger_new(&m->families, err);
	if (!rc)
		rc = ledger_new(&m->later, err);
	if (!rc)
		rc = ledger_new(&m->waits, err);
	if (!rc)
		adapt_reset(m->adapt, spread_of_model(m->model));
	return rc;
}

/* That of the same model, with the same layers; NULL: there is none. */
static struct learnt *learnt_of(struct sched *s, const struct learnt *m)
{
	for (size_t i = 0; i < s->n_learnt && m->model; i++) {
		if (s->learnt[i].model == m->model && s->learnt[i].adapt &&
		    s->learnt[i].without == m->without)
			return &s->learnt[i];
	}
	return NULL;
}

int learn_use(struct sched *s, const struct sched_params *p, struct err *err)
{
	size_t n = 1 + p->n_own_models;
	struct learnt *fresh = mem_calloc(n, sizeof *fresh);
	int rc = fresh ? 0 : err_nomem(err, "%zu models", n);
	bool all_stay = n == s->n_learnt;

	for (size_t i = 0; i < n && !rc; i++) {
		fresh[i].model = i ? p->own_model[i - 1] : p->model;
		fresh[i].without = p->policy.without & LAYERS_LEARNT;
		if (!learnt_of(s, &fresh[i]))
			rc = learnt_init(&fresh[i], err);
	}
	if (rc) {
		learnt_free(fresh, n);
		return rc;
	}
	for (size_t i = 0; i < n; i++) {
		struct learnt *same = fresh[i].adapt ? NULL : learnt_of(s, &fresh[i]);

		all_stay = all_stay && same == &s->learnt[i];
		if (same) {
			fresh[i] = *same;
			*same = (struct learnt){ 0 };
		}
	}
	if (!all_stay) { /* what jobs do to each other is told by the errors of the models */
		pairs_reset(s->pairs, spread_of_model(p->model));
		s->untaught = true;
	}
	learnt_free(s->learnt, s->n_learnt);
	s->learnt = fresh;
	s->n_learnt = n;
	return 0;
}

double sched_foreseen_s(struct sched *s, int64_t now_ns, uint64_t id, double actual_s)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	double elapsed_s, done_s;

	now_ns = live_clock(s, now_ns);
	if (!j || !j->running || !s->looks_ahead || !(j->prior_s > 0.0) || !(j->taken.time_s > 0.0) ||
	    now_ns <= j->started_ns)
		return NAN;
	elapsed_s = 1e-9 * (double)(now_ns - j->started_ns);
	done_s = j->done_s + (now_ns > s->since_ns ? 1e-9 * (double)(now_ns - s->since_ns) * j->speed : 0.0);
	/* Its mean speed counts: who asks late, or started it late, has seen it run for another time than
	 * we. */
	return j->taken.time_s * (done_s / elapsed_s) * actual_s / j->prior_s;
}

void sched_met(struct sched *s, int64_t now_ns, uint64_t id, struct pairs_met *out)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);

	*out = (struct pairs_met){ 0 };
	if (!s->kinds || !j || !j->running || !j->kind_watched)
		return;
	live_settle(s, live_clock(s, now_ns));
	if (!(j->done_s > 0.0 && j->plain_s > 0.0))
		return;
	pairs_meet(s->pairs, &s->met, &s->met_from[place], j->kind_number, out);
	out->plain = log(j->plain_s / j->done_s);
}

bool sched_plausible(const struct sched *s, const struct sched_observation *o)
{
	double foreseen_s = isnan(o->foreseen_s) ? o->actual_s : o->foreseen_s;

	if (o->model >= s->n_learnt || !s->learnt[o->model].model ||
	    !(o->model_s > 0.0 && isfinite(o->model_s)))
		return o->actual_s > 0.0 && isfinite(o->actual_s);
	return adapt_plausible(s->learnt[o->model].adapt, o->model_s, o->actual_s, !o->stranger) &&
	       adapt_plausible(s->learnt[o->model].adapt, o->model_s, foreseen_s, !o->stranger);
}

static void learn_pairs(struct sched *s, const struct sched_observation *o, double bias)
{
	if (!s->kinds || !o->met || !o->met->kind || !(o->foreseen_s > 0.0))
		return;
	pairs_observe(s->pairs, o->met, o->user, log(o->foreseen_s / o->model_s) + o->met->plain - bias);
	s->plan_ns = INT64_MIN; /* running jobs may end at other times than was thought */
}

void sched_teach(struct sched *s, const struct sched_mixed *m)
{
	struct pairs_met met = { .kind = learn_kind(s, m->of) };

	if (!s->kinds)
		return;
	if (m->held > 0.0) {
		met.beside[0].kind = learn_kind(s, m->beside);
		met.beside[0].share = pairs_part(s->pairs, m->held, m->processes);
		met.n = 1;
	}
	pairs_teach(s->pairs, &met, m->score);
	s->plan_ns = INT64_MIN;
}

bool sched_untaught(struct sched *s)
{
	bool was = s->untaught;

	s->untaught = false;
	return was;
}

const struct adapt *sched_adapt(const struct sched *s, uint32_t model)
{
	return s->adapts && model < s->n_learnt && s->learnt[model].model ? s->learnt[model].adapt : NULL;
}

/* The row x of a job with these values, and what families the model tells apart; NULL: it cannot tell. */
static const struct spread *row_of(const struct sched *s, uint32_t model, const struct job_values *v,
				   uint32_t cpus, double *x)
{
	const struct model *m = model < s->n_learnt ? s->learnt[model].model : NULL;
	double number[SCHEMA_MAX_COLUMNS];
	struct job_values job = { .number = number, .category = v ? v->category : NULL };
	int at;

	if (!m || !m->time.spread || !v || !v->number || m->features->n > DECIDE_MAX_FEATURES)
		return NULL;
	memcpy(number, v->number, (m->schema->n_columns + m->schema->n_derived) * sizeof *number);
	at = schema_role(m->schema, ROLE_CPUS);
	if (at >= 0 && isnan(number[at]))
		number[at] = cpus;
	features_encode_job(m->features, &job, x);
	return m->time.spread;
}

uint64_t sched_family(const struct sched *s, uint32_t model, const struct job_values *v, uint32_t cpus,
		      bool *out_new)
{
	double x[DECIDE_MAX_FEATURES];
	const struct spread *spread = row_of(s, model, v, cpus, x);

	*out_new = spread && spread_new_family(spread, x);
	return spread ? spread_family(spread, x) : 0;
}

bool sched_observe(struct sched *s, const struct sched_observation *o)
{
	double foreseen_s = isnan(o->foreseen_s) ? o->actual_s : o->foreseen_s;
	bool is_new = false;
	uint64_t family = sched_family(s, o->model, o->values, o->cpus, &is_new);
	struct adapt_who who = { o->type, o->user, o->stranger && !is_new ? 0 : family };
	const struct learnt *m;

	if (!sched_adapt(s, o->model) || !sched_plausible(s, o) || !(o->model_s > 0.0 && foreseen_s > 0.0))
		return !o->stranger && !is_new;
	m = &s->learnt[o->model];
	if (is_new) { /* it says nothing of the jobs that the model knows */
		ledger_add(ledger_claim(m->families, who, family, (struct ledger_entry){ 0 }),
			   log(foreseen_s / o->model_s) - log(adapt_bias(m->adapt, who)));
	} else {
		learn_pairs(s, o, log(adapt_bias(m->adapt, who)));
		adapt_observe(m->adapt, who, o->model_s, foreseen_s);
	}
	later_observe(m->later, who, o->confidence, foreseen_s, o->upper_s, o->actual_s);
	/* Many starts take no longer than the lag that is allowed for; these did not wait for other jobs. */
	if (o->waited_s > 2.0 * s->lag_s && o->told_s > 0.0 && o->limit_s > o->told_s)
		waits_observe(m->waits, who, o->confidence,
			      (o->response_s - o->told_s) / waits_room_s(o->told_s, o->limit_s),
			      o->response_s <= o->told_upper_s);
	s->quiet_ns = INT64_MIN; /* who was held may be free to start */
	return !o->stranger && !is_new;
}

uint64_t learn_kind(const struct sched *s, const struct sched_request *r)
{
	double x[DECIDE_MAX_FEATURES];
	const struct spread *spread = row_of(s, r->model, r->values, r->cpus, x);

	return rng_mix((spread ? spread_kind(spread, x) : 0) ^
		       rng_mix((uint64_t)r->model << 32 | (uint32_t)r->type)) |
	       1;
}

struct later_effect learn_later(const struct sched *s, const struct sched_request *r)
{
	if (s->policy.without & LAYER_LATER || !sched_adapt(s, r->model))
		return (struct later_effect){ 0 };
	return later_of(s->learnt[r->model].later, (struct adapt_who){ r->type, r->user, 0 });
}

unsigned sched_family_known(const struct sched *s, const struct sched_request *r)
{
	const struct adapt_who who = { r->type, r->user, 0 };
	bool is_new;
	uint64_t family = sched_family(s, r->model, r->values, r->cpus, &is_new);

	if (!is_new || !s->adapts || s->policy.without & LAYER_NEW_FAMILY)
		return UINT_MAX;
	return ledger_of(s->learnt[r->model].families, who, family).n;
}

void learn_in_scene(const struct sched *s, const struct sched_request *r, struct decide_scene *scene)
{
	double x[DECIDE_MAX_FEATURES];
	const struct spread *spread = row_of(s, r->model, r->values, r->cpus, x);
	uint64_t family = spread ? spread_family(spread, x) : 0;
	struct ledger_entry runs;

	scene->adapt = sched_adapt(s, r->model);
	scene->later = learn_later(s, r);
	scene->waits_share = 0.0;
	if (scene->adapt && !(s->policy.without & LAYER_LATER))
		scene->waits_share = waits_share(s->learnt[r->model].waits,
						 (struct adapt_who){ r->type, r->user, 0 }, r->confidence);
	scene->who = (struct adapt_who){ r->type, r->user, family };
	scene->level = (struct spread_level){ .narrow = 1.0 };
	scene->new_family = scene->adapt && spread && spread_new_family(spread, x);
	if (!scene->new_family || s->policy.without & LAYER_NEW_FAMILY)
		return;
	runs = ledger_of(s->learnt[r->model].families, scene->who, family);
	scene->level = spread_level_of(spread, spread_knows(spread, x), runs.n, runs.mean, runs.variance);
}
